/**
 * Kernels of the WebGPU backend that are replaced. Its own cast to floats leaves integers in the buffer and changes the type's
 * name alone, which its transpose does not know. Its own scatter adds what falls on one row in whatever order the GPU's threads
 * come; here that is the order of the updates, so that the same numbers always have the same sum, to the last bit.
 */
import * as tf from '@tensorflow/tfjs-core'
import type { WebgpuBackend } from './webgpu-backend.js'

type Given = Parameters<tf.KernelFunc>[0]

/** Once for each thread. */
export function registerWebgpuKernels(): void {
  replace('Cast', cast)
  replace('ScatterNd', scatter)
}

/** @param compute undefined where the backend's own kernel will do */
function replace(kernelName: string, compute: (given: Given) => tf.TensorInfo | undefined): void {
  const original = tf.getKernel(kernelName, 'webgpu')
  tf.unregisterKernel(kernelName, 'webgpu')
  tf.registerKernel({ ...original, kernelFunc: given => compute(given) ?? original.kernelFunc(given) })
}

function run(kernelName: string, given: Given): tf.TensorInfo {
  return tf.getKernel(kernelName, 'webgpu').kernelFunc(given) as tf.TensorInfo
}

function cast({ inputs, attrs, backend }: Given): tf.TensorInfo | undefined {
  const { x } = inputs as { x: tf.TensorInfo }
  const { dtype } = attrs as { dtype?: string }
  if (dtype !== 'float32' || (x.dtype !== 'int32' && x.dtype !== 'bool')) return undefined
  const webgpu = backend as WebgpuBackend
  const one = webgpu.makeTensorInfo([], 'float32', Float32Array.of(1))
  const result = run('Multiply', { inputs: { a: x, b: one }, attrs: {}, backend })
  webgpu.disposeData(one.dataId)
  return result
}

/** Rows of updates [count, width] added to those of a matrix of zeros that indices [count, 1] name. */
function scatter({ inputs, attrs, backend }: Given): tf.TensorInfo | undefined {
  const { indices, updates } = inputs as { indices: tf.TensorInfo; updates: tf.TensorInfo }
  const { shape } = attrs as unknown as { shape: number[] }
  const isOfRows = shape.length === 2 && updates.shape.length === 2 && indices.shape.length === 2
  const isEmpty = tf.util.sizeFromShape(updates.shape) === 0
  if (!isOfRows || isEmpty || indices.shape[1] !== 1 || updates.dtype !== 'float32' || indices.dtype !== 'int32') {
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

/** For each number of the updates a thread: the first of those that fall on one row adds up all of them. */
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
