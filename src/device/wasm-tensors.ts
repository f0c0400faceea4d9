/** What native kernels need of the wasm backend: outputs, and addresses of tensors on its heap. */
import type { TensorInfo } from '@tensorflow/tfjs-core'
import type { Blas } from './blas.js'

/** The parts of the backend that kernels use. */
export interface WasmBackend {
  readonly wasm: { readonly HEAPU8: Uint8Array }
  readonly dataIdMap: { get(id: object): { readonly memoryOffset: number } }
  makeOutput(shape: readonly number[], dtype: string): TensorInfo
  /** Tensors that have these data. */
  refCount(id: object): number
  incRef(id: object): void
}

/** Addresses of tensors, in their order. Ask for them after outputs are made: the heap may have moved by growing. */
export function addressesOf(blas: Blas, { wasm, dataIdMap }: WasmBackend, tensors: readonly TensorInfo[]): number[] {
  const heap = blas.address(wasm.HEAPU8)
  return tensors.map(({ dataId }) => heap + dataIdMap.get(dataId).memoryOffset)
}
