/**
 * Times on a device that is not here, from its figures (Williams, Waterman and Patterson, "Roofline: an insightful visual
 * performance model for multicore architectures", CACM 52, 2009): a pass takes as long as its operations, or as its memory
 * traffic, whichever is longer.
 */
import type { Tensor } from '#tfjs'
import type { Model } from '../../nn/types.js'
import { countOperations, type Operations } from './operations.js'
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
  /** Of a forward pass and a VJP with recomputation of one sample. */
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
