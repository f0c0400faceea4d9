/**
 * The memory of the wasm backend: addresses of tensors, and a guard of its allocator. The backend uses the result of a
 * failed allocation as an address; the guard throws instead, also if the heap exceeds the size up to which the backend
 * works.
 */
import type { TensorInfo } from '#tfjs'
import type { Blas } from './blas.js'
import { DeviceError } from './types.js'

/** The parts of the backend that kernels use. */
export interface WasmBackend {
  readonly wasm: { readonly HEAPU8: Uint8Array }
  readonly dataIdMap: { get(id: object): { readonly memoryOffset: number } }
  makeOutput(shape: readonly number[], dtype: string): TensorInfo
  /** Number of tensors that share these data. */
  refCount(id: object): number
  incRef(id: object): void
}

/** Addresses of tensors. Call it after outputs are made: the heap may move when it grows. */
export function addressesOf(blas: Blas, { wasm, dataIdMap }: WasmBackend, tensors: readonly TensorInfo[]): number[] {
  const heap = blas.address(wasm.HEAPU8)
  return tensors.map(({ dataId }) => heap + dataIdMap.get(dataId).memoryOffset)
}

/** The parts of the backend's module that manage memory. */
export interface Heap {
  readonly HEAPU8: { readonly length: number }
  _malloc(bytes: number): number
  _free(address: number): void
}

/** WebAssembly's limit is 4 GiB, but from about 3.5 GiB tensors were silently corrupted. */
const MAX_HEAP_BYTES = 3.25 * 2 ** 30

const guarded = new WeakSet<Heap>()

/** Makes failed allocations throw a DeviceError. Idempotent. */
export function guardHeap(heap: Heap): void {
  if (guarded.has(heap)) return
  guarded.add(heap)
  // The module replaces `_malloc` at its first call.
  heap._free(heap._malloc(8))
  const allocate = heap._malloc
  heap._malloc = bytes => {
    const address = allocate(bytes)
    if (address !== 0 && heap.HEAPU8.length <= MAX_HEAP_BYTES) return address
    if (address !== 0) heap._free(address)
    const megabytes = Math.round(heap.HEAPU8.length / 2 ** 20)
    throw new DeviceError(
      `the wasm device is out of memory (heap size ${megabytes} MB): use a smaller --microbatch, --stash host, or --schedule l2l`
    )
  }
}
