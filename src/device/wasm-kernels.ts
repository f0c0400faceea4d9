/**
 * Custom fused kernels for the wasm backend: one pass over memory where TensorFlow.js takes one per operation. Kernels
 * named `InPlace` write to the memory of their first input, which must not be used afterwards, unless other tensors
 * share it.
 */
import * as tf from '#tfjs'
import { instantiate, type Runtime } from '../numeric/wasm-memory.js'
import {
  addRows,
  fillRows,
  gelu,
  geluExact,
  geluExactWithSlope,
  geluWithSlope,
  multiplyRows,
  sumRows
} from './wasm-code/elementwise.js'
import { norm, normBack, softmax, softmaxBack } from './wasm-code/rows.js'
import type { WasmBackend } from './wasm-memory.js'

const WASM_KERNELS = [
  'AddInPlace',
  'MultiplyInPlace',
  'SumRows',
  'GeluInPlace',
  'GeluWithSlopeInPlace',
  'GeluExactInPlace',
  'GeluExactWithSlopeInPlace',
  'LayerNorm',
  'LayerNormBack',
  'SoftmaxInPlace',
  'SoftmaxBackInPlace'
] as const
export type WasmKernel = (typeof WASM_KERNELS)[number]

type Functions = ReturnType<typeof instantiate>

/** The part of the backend's module that another instance needs to share its memory. */
interface Module {
  readonly asm: { readonly memory: object }
}

const SOURCES = [
  ...[addRows, multiplyRows, fillRows, sumRows, gelu, geluWithSlope, geluExact, geluExactWithSlope],
  ...[norm, normBack, softmax, softmaxBack]
]
let functions: Functions | undefined

/** Registers the kernels. Idempotent. @returns the WebAssembly functions, which take addresses in the backend's heap */
export function registerWasmKernels(backend: WasmBackend): Functions {
  if (functions !== undefined) return functions
  const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: Runtime }
  const outputs = instantiate(WebAssembly, SOURCES, (backend.wasm as unknown as Module).asm.memory)
  for (const kernelName of WASM_KERNELS) {
    const compute = kernels[kernelName]
    const kernelFunc: tf.KernelFunc = ({ inputs, attrs }) =>
      compute(new KernelCall(backend), outputs, inputs as Tensors, attrs as unknown as Attributes)
    tf.registerKernel({ kernelName, backendName: 'wasm', kernelFunc })
  }
  functions = outputs
  return outputs
}

type Tensors = Readonly<Record<string, tf.TensorInfo>>

interface Attributes {
  readonly epsilon: number
  readonly isCausal: boolean
  /** Numbers of each row that count, by sample. @default all */
  readonly lengths?: Int32Array
}

type Compute = (
  call: KernelCall,
  functions: Functions,
  inputs: Tensors,
  attributes: Attributes
) => tf.TensorInfo | tf.TensorInfo[]

/** Allocates outputs and resolves addresses for one kernel call. */
class KernelCall {
  constructor(private readonly backend: WasmBackend) {}

  output(shape: readonly number[]): tf.TensorInfo {
    return this.backend.makeOutput(shape, 'float32')
  }

  /** A tensor that shares the input's memory, or a new one if other tensors share it. */
  inPlaceOf({ dataId, shape, dtype }: tf.TensorInfo): tf.TensorInfo {
    if (this.backend.refCount(dataId) > 1) return this.output(shape)
    this.backend.incRef(dataId)
    return { dataId, shape, dtype }
  }

  addressOf({ dataId }: tf.TensorInfo): number {
    return this.backend.dataIdMap.get(dataId).memoryOffset
  }

  clear(tensor: tf.TensorInfo): void {
    const start = this.addressOf(tensor)
    this.backend.wasm.HEAPU8.fill(0, start, start + 4 * sizeOf(tensor))
  }

  copy(from: tf.TensorInfo, to: tf.TensorInfo): void {
    if (from.dataId === to.dataId) return
    const start = this.addressOf(from)
    this.backend.wasm.HEAPU8.copyWithin(this.addressOf(to), start, start + 4 * sizeOf(from))
  }
}

const sizeOf = ({ shape }: tf.TensorInfo) => tf.util.sizeFromShape(shape)
const widthOf = ({ shape }: tf.TensorInfo) => shape[shape.length - 1]
const rowsOf = (tensor: tf.TensorInfo) => tf.util.sizeFromShape(tensor.shape.slice(0, -1))

const kernels: Readonly<Record<WasmKernel, Compute>> = {
  /** x + y, where y has the shape of x or of its last axes. */
  AddInPlace: (call, { addRows }, { x, y }) => rowwise(call, addRows, x, y),
  MultiplyInPlace: (call, { multiplyRows }, { x, y }) => rowwise(call, multiplyRows, x, y),

  /** Sum over all axes but the last. */
  SumRows(call, { sumRows }, { x }) {
    const sum = call.output([widthOf(x)])
    call.clear(sum)
    sumRows(call.addressOf(x), call.addressOf(sum), rowsOf(x), widthOf(x))
    return sum
  },

  GeluInPlace: (call, { gelu }, { z }) => elementwise(call, gelu, z),
  GeluWithSlopeInPlace: (call, { geluWithSlope }, { z }) => elementwiseWithSlope(call, geluWithSlope, z),
  GeluExactInPlace: (call, { geluExact }, { z }) => elementwise(call, geluExact, z),
  GeluExactWithSlopeInPlace: (call, { geluExactWithSlope }, { z }) => elementwiseWithSlope(call, geluExactWithSlope, z),

  /** Returns [y, mean, inverse], see `norm`. */
  LayerNorm(call, { norm }, { x, scale, offset }, { epsilon }) {
    const statistic = [...x.shape.slice(0, -1), 1]
    const outputs = [call.output(x.shape), call.output(statistic), call.output(statistic)]
    const addresses = [x, scale, offset, ...outputs].map(tensor => call.addressOf(tensor))
    norm(...addresses, rowsOf(x), widthOf(x), 1 / widthOf(x), epsilon)
    return outputs
  },

  /** Returns [dx, dScale, dOffset], see `normBack`. */
  LayerNormBack(call, { normBack }, { x, mean, inverse, scale, dy }) {
    const outputs = [call.output(x.shape), call.output(scale.shape), call.output(scale.shape)]
    const addresses = [x, mean, inverse, scale, dy, ...outputs].map(tensor => call.addressOf(tensor))
    for (const sum of outputs.slice(1)) call.clear(sum)
    normBack(...addresses, rowsOf(x), widthOf(x), 1 / widthOf(x))
    return outputs
  },

  /**
   * Softmax along the last axis. If causal, row i of each matrix of the last two axes covers only elements 0 to i; with
   * lengths, the rows of sample i cover the first `lengths[i]` elements.
   */
  SoftmaxInPlace(call, { softmax }, { x }, { isCausal, lengths }) {
    const p = call.inPlaceOf(x)
    const width = widthOf(x)
    const [from, to] = [call.addressOf(x), call.addressOf(p)]
    if (lengths === undefined || isCausal) {
      softmax(from, to, rowsOf(x), width, isCausal ? 1 : width, width)
      return p
    }
    const rows = rowsOf(x) / lengths.length
    for (const [sample, length] of lengths.entries()) {
      const offset = 4 * sample * rows * width
      softmax(from + offset, to + offset, rows, width, length, length)
    }
    return p
  },

  /** Writes to the memory of dp. */
  SoftmaxBackInPlace(call, { softmaxBack }, { dp, p }) {
    const back = call.inPlaceOf(dp)
    call.copy(dp, back)
    softmaxBack(call.addressOf(p), call.addressOf(back), rowsOf(p), widthOf(p))
    return back
  }
}

function elementwise(call: KernelCall, compute: Functions[string], z: tf.TensorInfo): tf.TensorInfo {
  const y = call.inPlaceOf(z)
  compute(call.addressOf(z), call.addressOf(y), sizeOf(z))
  return y
}

function elementwiseWithSlope(call: KernelCall, compute: Functions[string], z: tf.TensorInfo): tf.TensorInfo[] {
  const [y, slope] = [call.inPlaceOf(z), call.output(z.shape)]
  compute(call.addressOf(z), call.addressOf(y), call.addressOf(slope), sizeOf(z))
  return [y, slope]
}

function rowwise(call: KernelCall, compute: Functions[string], x: tf.TensorInfo, y: tf.TensorInfo): tf.TensorInfo {
  const result = call.inPlaceOf(x)
  call.copy(x, result)
  const width = sizeOf(y)
  compute(call.addressOf(result), call.addressOf(y), sizeOf(x) / width, width)
  return result
}

/**
 * Replaces the wasm backend's gather along the first axis, which copies element by element, by a copy of whole rows.
 */
const KERNEL = 'GatherV2'
let isReplaced = false

/** Registers the kernel. Idempotent. */
export function registerRowGather(): void {
  if (isReplaced) return
  isReplaced = true
  const original = tf.getKernel(KERNEL, 'wasm')
  tf.unregisterKernel(KERNEL, 'wasm')
  tf.registerKernel({ ...original, kernelFunc: rowGather(original.kernelFunc) })
}

function rowGather(fallback: tf.KernelFunc): tf.KernelFunc {
  return call => {
    const { x, indices } = call.inputs as { x: tf.TensorInfo; indices: tf.TensorInfo }
    const { axis, batchDims } = call.attrs as unknown as { readonly axis: number; readonly batchDims: number }
    const hasWordElements = x.dtype === 'float32' || x.dtype === 'int32'
    if (axis !== 0 || batchDims !== 0 || !hasWordElements || indices.dtype !== 'int32') return fallback(call)
    const backend = call.backend as WasmBackend
    const [rows, ...row] = x.shape
    const result = backend.makeOutput([...indices.shape, ...row], x.dtype)
    const { buffer } = backend.wasm.HEAPU8
    const words = new Int32Array(buffer)
    // Tensors are aligned to 4 bytes.
    const [source, ids, target] = [x, indices, result].map(
      ({ dataId }) => backend.dataIdMap.get(dataId).memoryOffset / 4
    )
    const size = tf.util.sizeFromShape(row)
    const count = tf.util.sizeFromShape(indices.shape)
    for (let i = 0; i < count; i++) {
      const index = words[ids + i]
      tf.util.assert(index >= 0 && index < rows, () => `gather: row ${index} is out of range (${rows} rows)`)
      const start = source + index * size
      words.copyWithin(target + i * size, start, start + size)
    }
    return result
  }
}
