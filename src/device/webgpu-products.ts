/**
 * Matrix products of the WebGPU backend with the same bits in every run. For a small output and a long inner dimension the
 * backend splits the inner dimension among workgroups, which add their parts to the result with atomic operations, in any order.
 * Here one workgroup takes the whole inner dimension of its tile.
 */
import type * as tf from '@tensorflow/tfjs-core'
import type { WebgpuBackend } from './webgpu-backend.js'

/** The parts of the backend's `MatMulSplitKProgram` that are used here. */
interface SplitProgram {
  readonly transposeA: boolean
  shaderKey: string
  /** Elements of the inner dimension for each workgroup. */
  splitedDimInner: number
  dispatch: [x: number, y: number, z: number]
}

/** The inner dimension is a multiple of this in the generated shader, which checks the bounds of what it reads. */
const TILE = 32

/** Once for each backend. */
export function orderProducts(backend: WebgpuBackend): void {
  const run = backend.runWebGPUProgram.bind(backend)
  backend.runWebGPUProgram = (program, ...rest) => {
    if (isSplit(program)) joinParts(program, rest[0] as tf.TensorInfo[])
    return run(program, ...rest)
  }
}

function isSplit(program: unknown): program is SplitProgram {
  return (program as Partial<SplitProgram>).shaderKey?.startsWith('matMulSplitK') ?? false
}

/** Both factors have three dimensions, the first of which is 1. */
function joinParts(program: SplitProgram, [a]: readonly tf.TensorInfo[]): void {
  const inner = a.shape[program.transposeA ? 1 : 2]
  program.splitedDimInner = Math.ceil(inner / TILE) * TILE
  program.dispatch[2] = 1
  // The shader holds the number of tiles as a constant.
  program.shaderKey += `_${program.splitedDimInner}`
}
