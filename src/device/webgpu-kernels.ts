/**
 * Replacements of WebGPU kernels. The backend's cast to float32 leaves integers in the buffer and changes only the
 * dtype, which its transpose does not handle. The backend's scatter sums updates of a row in nondeterministic order;
 * the replacement sums them in order, so that results are bit-identical.
 */
import * as tf from '#tfjs'
import type { WebgpuBackend } from './webgpu-backend.js'

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
