/**
 * Times on a device that is not here, from its figures (Williams, Waterman and Patterson, "Roofline: an insightful visual
 * performance model for multicore architectures", CACM 52, 2009): a pass takes as long as its operations, or as its memory
 * traffic, whichever is longer.
 */
import type { Tensor } from '#tfjs'
import * as tf from '#tfjs'
import { FLOAT_BYTES, type Model, sizeOf } from '../../nn/types.js'
import { type DeviceProfile, headPass, type LayerPasses, type LayerProfile, layerPasses, shapeKey } from './profile.js'

/** What is known of a device. */
export interface DeviceFigures {
  /** Floating-point operations per second. */
  readonly flops: number
  /** Bytes per second between the device's memory and its processors. */
  readonly memoryBandwidth: number
  /** Bytes per second between host and device. */
  readonly transfer: number
}

export interface RooflineLayer extends LayerProfile {
  /** Operations of a forward pass and a VJP with recomputation of one sample. */
  readonly operations: Operations
}

export interface RooflineProfile extends DeviceProfile {
  readonly layers: readonly RooflineLayer[]
}

/**
 * The profile of a device that is not here.
 * @param here measured on this machine; its bytes are kept
 * @param batch samples over which the traffic of weights is divided
 */
export async function rooflineProfile(
  model: Model,
  here: DeviceProfile,
  figures: DeviceFigures,
  batch: number
): Promise<RooflineProfile> {
  const cache = new Map<string, Pick<RooflineLayer, 'forwardMs' | 'vjpMs' | 'savedVjpMs' | 'operations'>>()
  const perSample = async (prepare: (samples: number) => () => Tensor): Promise<Operations> => {
    const one = await countOperations(() => prepare(1))
    const two = await countOperations(() => prepare(2))
    const of = (count: keyof Operations) => (one[count] + (batch - 1) * (two[count] - one[count])) / batch
    return { flops: of('flops'), bytes: of('bytes') }
  }
  const msOf = ({ flops, bytes }: Operations) => 1000 * Math.max(flops / figures.flops, bytes / figures.memoryBandwidth)
  const layers: RooflineLayer[] = []
  for (const [l, layer] of here.layers.entries()) {
    const key = shapeKey(model.layers[l], layer.hasBackward)
    let times = cache.get(key)
    if (times === undefined) {
      const count = (pass: (passes: LayerPasses) => () => Tensor) =>
        perSample(samples => pass(layerPasses(model.layers[l], model, samples)))
      const forward = await count(passes => passes.forward)
      const none = { flops: 0, bytes: 0 }
      const vjp = layer.hasBackward ? await count(passes => passes.vjp) : none
      const savedVjp = layer.hasBackward ? await count(passes => passes.prepareSavedVjp()) : none
      times = {
        forwardMs: msOf(forward),
        vjpMs: msOf(vjp),
        savedVjpMs: Math.min(msOf(vjp), msOf(savedVjp)),
        operations: { flops: forward.flops + vjp.flops, bytes: forward.bytes + vjp.bytes }
      }
      cache.set(key, times)
    }
    layers.push({ ...layer, ...times })
  }
  const ms = msOf(await perSample(samples => headPass(model, samples)))
  return { bytesPerMs: figures.transfer / 1000, layers, head: { ...here.head, ms } }
}

/** Counts the floating-point operations and the memory traffic of work on the opened device, by the kernels that it runs. */
interface Operations {
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
