/**
 * The wasm backend's memory. The backend takes a failed allocation for an address and writes there; here it becomes an error,
 * as does a heap beyond the size up to which it was seen to work.
 */
import { DeviceError } from './errors.js'

/** The parts of the backend's module that have to do with memory. */
export interface Heap {
  readonly HEAPU8: { readonly length: number }
  _malloc(bytes: number): number
  _free(address: number): void
}

/** WebAssembly ends at 4 GiB; from about 3.5 GiB on tensors were corrupted without a word. */
const MAX_HEAP_BYTES = 3.25 * 2 ** 30

const guarded = new WeakSet<Heap>()

/** Makes allocations that fail throw a DeviceError. Harmless to repeat. */
export function guardHeap(heap: Heap): void {
  if (guarded.has(heap)) return
  guarded.add(heap)
  // The first call replaces the function that was called.
  heap._free(heap._malloc(8))
  const allocate = heap._malloc
  heap._malloc = bytes => {
    const address = allocate(bytes)
    if (address !== 0 && heap.HEAPU8.length <= MAX_HEAP_BYTES) return address
    if (address !== 0) heap._free(address)
    const megabytes = Math.round(heap.HEAPU8.length / 2 ** 20)
    throw new DeviceError(
      `the device wasm is out of memory, its heap having ${megabytes} MB: use a smaller --microbatch, --stash host, or --schedule l2l`
    )
  }
}
