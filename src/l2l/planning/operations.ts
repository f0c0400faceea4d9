/** Counts the floating-point operations and the memory traffic of work on the opened device, by the kernels that it runs. */
import * as tf from '#tfjs'
import { FLOAT_BYTES, sizeOf } from '../../nn/types.js'

export interface Operations {
  /** Floating-point operations; a multiplication with an addition counts as two. */
  readonly flops: number
  /** Bytes that kernels read and write. */
  readonly bytes: number
}

type Shapes = readonly (readonly number[])[]

/** Kernels that only change the layout or the shape, which other devices do in place. */
const LAYOUT = new Set(['Transpose', 'Reshape', 'Identity', 'Cast', 'Slice', 'Pack', 'Unpack', 'Concat', 'SplitV'])

const last = (shape: readonly number[]) => shape[shape.length - 1]

/** 2·batch·length²·width for qkv [batch, length, 3·width], as in `HeadKernel`. */
const attention = ([batch, length, width]: readonly number[]) => (2 * batch * length * length * width) / 3

/** Operations of products by kernel, from the shapes of inputs and output. All others take one for each output element. */
const PRODUCTS: Readonly<Record<string, (inputs: Shapes, output: readonly number[]) => number>> = {
  BatchMatMul: ([a], y) => 2 * sizeOf(a) * last(y),
  _FusedMatMul: ([a], y) => 2 * sizeOf(a) * last(y),
  Conv2D: ([, filter], y) => (2 * sizeOf(y) * sizeOf(filter)) / last(filter),
  FusedConv2D: ([, filter], y) => (2 * sizeOf(y) * sizeOf(filter)) / last(filter),
  Affine: ([x, kernel]) => 2 * sizeOf(x) * kernel[1],
  AffineBack: ([dy, kernel]) => 2 * sizeOf(dy) * kernel[0],
  AffineGradients: ([x, dy]) => 2 * sizeOf(x) * last(dy),
  HeadScores: ([qkv]) => attention(qkv),
  HeadMix: ([, qkv]) => attention(qkv),
  HeadMixBack: ([, qkv]) => attention(qkv),
  HeadGradients: ([, , , qkv]) => 3 * attention(qkv)
}

/**
 * @param prepare creates the arguments, which are not counted, and returns the work
 */
export async function countOperations(prepare: () => () => tf.Tensor): Promise<Operations> {
  let profile: ReturnType<typeof tf.profile> | undefined
  // The work is done when `profile` returns; its promise is only about times.
  tf.tidy(() => {
    const work = prepare()
    profile = tf.profile(() => {
      work()
      return []
    })
  })
  const { kernels } = (await profile) as Awaited<ReturnType<typeof tf.profile>>
  let flops = 0
  let bytes = 0
  for (const { name, inputShapes, outputShapes } of kernels) {
    if (LAYOUT.has(name)) continue
    const inputs = inputShapes.filter(shape => shape !== null)
    const outputs = outputShapes as Shapes
    const sizes = [...inputs, ...outputs].reduce((sum, shape) => sum + sizeOf(shape), 0)
    bytes += FLOAT_BYTES * sizes
    flops += PRODUCTS[name]?.(inputs, outputs[0]) ?? outputs.reduce((sum, shape) => sum + sizeOf(shape), 0)
  }
  return { flops, bytes }
}
