/** Bytes on the device while a layer is executed, in either direction, under layer-to-layer execution. */
import { shuffleGroups } from '../../nn/layer-order.js'
import type { Schedule } from '../executor/types.js'
import { neighboursOf } from './neighbours.js'
import { isKept, type LayerProfile, type Work } from './profile.js'
import type { PlanRequest } from './types.js'

/**
 * Bytes of one layer's backward pass of a microbatch, without its weights: input, output gradient, the VJP's working
 * memory and the sum of earlier gradients; or, if larger, the bytes while gradients are added to their sum.
 */
export function backwardBytes(layer: LayerProfile, input: number, microbatch: number, isSplit: boolean): number {
  const { gradientBytes, outputBytes, work, hasBackward } = layer
  if (!hasBackward) return 0
  const vjp = input + work.fixed + microbatch * (outputBytes + work.sample)
  return isSplit ? gradientBytes + Math.max(vjp, 2 * gradientBytes) : vjp
}

/**
 * Upper bound of the bytes on the device while a layer is executed, without saved activations and resident weights, for
 * any layers executed before and after it. `live` is without outputs that are stashed on the device; `stashed` are those while the
 * layer is executed, without those of layers below, and `staying` those that remain while the layers above are executed.
 * @param stashed samples whose outputs are stashed on the device
 */
export function* liveBytes(
  { profile, inputBytes, batch }: PlanRequest,
  schedule: Schedule,
  microbatch: number,
  stashed: number
) {
  const { layers, head } = profile
  const last = layers.length - 1
  const { after, before, ends } = neighboursOf(layers)
  const largestWeights = (among: ReadonlySet<number>) =>
    schedule === 'l2l-p' ? Math.max(0, ...[...among].map(l => layers[l].loadBytes)) : 0
  for (const group of shuffleGroups(layers, [...layers.keys()])) {
    // With the stash on the device, the outputs and later the output gradients of all microbatches are on the device.
    // All layers of a group have outputs of the same size, and any of them may be executed last.
    const outputBytes = group.reduce((sum, l) => sum + (l < last ? stashed * layers[l].outputBytes : 0), 0)
    // Below the first layer that is trained, the outputs of two layers.
    const dropped = group[0] > 0 && !isKept(layers, group[0] - 1) ? stashed * layers[group[0] - 1].outputBytes : 0
    const stashedBytes = outputBytes + dropped
    const each = group.map(l => {
      const layer = layers[l]
      const input = microbatch * (l === 0 ? inputBytes : layers[l - 1].outputBytes)
      const forwardOf = ({ fixed, sample }: Work) => input + fixed + microbatch * sample + largestWeights(after[l])
      const isSplit = microbatch < batch
      const savingBytes = layer.savingWork.fixed + microbatch * layer.savingWork.sample
      const headBytes = microbatch * (layer.activationBytes + layer.outputBytes + head.work.sample) + head.work.fixed
      const lastLayer = ends.has(l) ? input + Math.max(savingBytes, headBytes) + (isSplit ? layer.gradientBytes : 0) : 0
      const backwardOf = (work: Work) =>
        Math.max(lastLayer, backwardBytes({ ...layer, work }, input, microbatch, isSplit))
      const loaded = { fixed: layer.savedWork.fixed, sample: layer.savedWork.sample + layer.activationBytes }
      // Includes the prefetched layer, unless the layer below is resident.
      const isCertain = before[l].size === 1
      return (isBelowResident: boolean, isOffloaded = false) => {
        const ahead = isBelowResident && isCertain ? 0 : largestWeights(before[l])
        const forward = forwardOf(isOffloaded ? layer.savingWork : layer.forwardWork)
        const backward = backwardOf(isOffloaded ? loaded : layer.work)
        return layer.weightBytes + Math.max(layer.loadBytes - layer.weightBytes, forward, backward + ahead)
      }
    })
    for (const [i, l] of group.entries()) {
      // The other layers of the group may already have saved their activations.
      const worst = () => Math.max(...each.map(live => Math.max(live(false), live(false, true))))
      const isLast = i === group.length - 1
      yield {
        l,
        live: group.length === 1 ? each[i] : worst,
        stashed: stashedBytes,
        staying: isLast && isKept(layers, group[0]) ? outputBytes : 0
      }
    }
  }
}
