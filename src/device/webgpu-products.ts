/**
 * Deterministic matrix products for the WebGPU backend. For a small output and a long inner dimension the backend
 * splits the inner dimension among workgroups, which accumulate their partial sums atomically in any order. After this
 * patch one workgroup covers the whole inner dimension of its tile.
 */
import type * as tf from '#tfjs'
import type { WebgpuBackend } from './webgpu-backend.js'

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
