/**
 * Replacements of WebGPU kernels. The backend's cast to float32 leaves integers in the buffer and changes only the dtype, which
 * its transpose does not handle. The backend's scatter sums updates of a row in nondeterministic order; the replacement sums
 * them in order, so that results are bit-identical.
 *
 * Deterministic matrix products for the WebGPU backend. For a small output and a long inner dimension the backend splits the
 * inner dimension among workgroups, which accumulate their partial sums atomically in any order. After this patch one workgroup
 * covers the whole inner dimension of its tile.
 */
import * as tf from '#tfjs'
import type { GpuBuffer, WebgpuBackend } from './webgpu-backend.js'

type KernelCall = Parameters<tf.KernelFunc>[0]

/** Call it once per thread. */
export function registerWebgpuKernels(): void {
  replace('Cast', cast)
  replace('ScatterNd', scatter)
}

/** @param compute returns undefined to fall back to the backend's kernel */
function replace(kernelName: string, compute: (call: KernelCall) => tf.TensorInfo | undefined): void {
  const original = tf.getKernel(kernelName, 'webgpu')
  tf.unregisterKernel(kernelName, 'webgpu')
  tf.registerKernel({ ...original, kernelFunc: call => compute(call) ?? original.kernelFunc(call) })
}

function run(kernelName: string, call: KernelCall): tf.TensorInfo {
  return tf.getKernel(kernelName, 'webgpu').kernelFunc(call) as tf.TensorInfo
}

function cast({ inputs, attrs, backend }: KernelCall): tf.TensorInfo | undefined {
  const { x } = inputs as { x: tf.TensorInfo }
  const { dtype } = attrs as { dtype?: string }
  if (dtype !== 'float32' || (x.dtype !== 'int32' && x.dtype !== 'bool')) return undefined
  const webgpu = backend as WebgpuBackend
  const one = webgpu.makeTensorInfo([], 'float32', Float32Array.of(1))
  const result = run('Multiply', { inputs: { a: x, b: one }, attrs: {}, backend })
  webgpu.disposeData(one.dataId)
  return result
}

/** Adds the rows of updates [count, width] to the rows of a zero matrix that indices [count, 1] select. */
function scatter({ inputs, attrs, backend }: KernelCall): tf.TensorInfo | undefined {
  const { indices, updates } = inputs as { indices: tf.TensorInfo; updates: tf.TensorInfo }
  const { shape } = attrs as unknown as { shape: number[] }
  const hasRows = shape.length === 2 && updates.shape.length === 2 && indices.shape.length === 2
  const isEmpty = tf.util.sizeFromShape(updates.shape) === 0
  if (!hasRows || isEmpty || indices.shape[1] !== 1 || updates.dtype !== 'float32' || indices.dtype !== 'int32') {
    return undefined
  }
  const [count, width] = updates.shape
  const rows = run('Fill', { inputs: {}, attrs: { shape, value: 0, dtype: 'float32' }, backend })
  const program = {
    variableNames: ['updates', 'indices'],
    outputShape: shape,
    workgroupSize: [THREADS, 1, 1],
    dispatchLayout: { x: [0, 1] },
    dispatch: [Math.ceil((count * width) / THREADS), 1, 1],
    shaderKey: 'scatter_in_order',
    uniforms: 'count : i32, width : i32,',
    getUserCode: () => SCATTER
  }
  const sizes = [count, width].map(size => ({ type: 'int32', data: [size] }))
  return (backend as WebgpuBackend).runWebGPUProgram(program, [updates, indices], 'float32', sizes, rows)
}

const THREADS = 64

/** One thread per element of the updates. The thread of the first update of a row sums all updates of the row. */
const SCATTER = `
fn main(index : i32) {
  if (index >= uniforms.count * uniforms.width) { return; }
  let at = index / uniforms.width;
  let column = index - at * uniforms.width;
  let row = indices[at];
  for (var i = 0; i < at; i++) {
    if (indices[i] == row) { return; }
  }
  var sum = updates[index];
  for (var i = at + 1; i < uniforms.count; i++) {
    if (indices[i] == row) { sum += updates[i * uniforms.width + column]; }
  }
  result[row * uniforms.width + column] = sum;
}
`

/** The properties of the backend's `MatMulSplitKProgram` that are used here. */
interface SplitProgram {
  readonly transposeA: boolean
  shaderKey: string
  /** Elements of the inner dimension per workgroup. */
  splitedDimInner: number
  dispatch: [x: number, y: number, z: number]
}

/** The generated shader rounds the inner dimension up to a multiple of this and checks bounds. */
const TILE = 32

/** Call it once per backend. */
export function makeProductsDeterministic(backend: WebgpuBackend): void {
  const run = backend.runWebGPUProgram.bind(backend)
  backend.runWebGPUProgram = (program, ...rest) => {
    if (isSplit(program)) mergeSplits(program, rest[0] as tf.TensorInfo[])
    return run(program, ...rest)
  }
}

function isSplit(program: unknown): program is SplitProgram {
  return (program as Partial<SplitProgram>).shaderKey?.startsWith('matMulSplitK') ?? false
}

/** Both factors have three axes, the first of length 1. */
function mergeSplits(program: SplitProgram, [a]: readonly tf.TensorInfo[]): void {
  const inner = a.shape[program.transposeA ? 1 : 2]
  program.splitedDimInner = Math.ceil(inner / TILE) * TILE
  program.dispatch[2] = 1
  // The number of tiles is a constant in the shader.
  program.shaderKey += `_${program.splitedDimInner}`
}

/**
 * Uploads through the WebGPU queue. By default the backend creates a mapped buffer per tensor, which the driver
 * allocates and clears, and records a copy from it. The queue copies values immediately into memory that it reuses.
 *
 * Ordering is preserved: the backend reuses a buffer only after it has submitted all commands that use it.
 */
type Numbers = Float32Array | Int32Array

/** STORAGE | COPY_SRC | COPY_DST, as in the backend, whose buffer pool is keyed by size and usage. */
const USAGE = 0x8c
/** Numbers copied out of shared memory at a time: few enough to stay in the CPU cache. */
const CHUNK = 2 ** 20

/** Call it once per backend. */
export function uploadThroughQueue(backend: WebgpuBackend): void {
  const upload = backend.uploadToGPU.bind(backend)
  const writer = new QueueWriter(backend)
  backend.uploadToGPU = id => {
    const data = backend.tensorMap.get(id)
    // Without values the call allocates an output buffer.
    if (data.resource || !data.values?.length) return upload(id)
    const numbers = asOnDevice(data.values, data.dtype)
    const buffer = backend.bufferManager.acquireBuffer(numbers.byteLength, USAGE)
    writer.write(buffer, numbers)
    data.resource = buffer
    data.values = undefined
  }
}

class QueueWriter {
  #chunk: ArrayBuffer | undefined

  constructor(private readonly backend: WebgpuBackend) {}

  /**
   * Copies values out of shared memory first, because the package webgpu exits the process when it reads shared memory.
   */
  write(buffer: GpuBuffer, numbers: Numbers): void {
    const { queue } = this.backend
    if (!(numbers.buffer instanceof SharedArrayBuffer)) {
      queue.writeBuffer(buffer, 0, numbers)
      return
    }
    this.#chunk ??= new ArrayBuffer(4 * CHUNK)
    for (let offset = 0; offset < numbers.length; offset += CHUNK) {
      const values = numbers.subarray(offset, offset + CHUNK)
      const copy = new (numbers instanceof Float32Array ? Float32Array : Int32Array)(this.#chunk, 0, values.length)
      copy.set(values)
      queue.writeBuffer(buffer, 4 * offset, copy)
    }
  }
}

/** Converts to four bytes per number; booleans are integers on the device. */
function asOnDevice(values: tf.TypedArray, dtype: tf.DataType): Numbers {
  if (dtype === 'float32') return values instanceof Float32Array ? values : Float32Array.from(values)
  return values instanceof Int32Array ? values : Int32Array.from(values)
}
