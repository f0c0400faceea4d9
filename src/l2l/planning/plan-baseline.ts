/** Plans the baseline schedules: everything on the device at once. */
import { shuffleGroups } from '../../nn/layer-order.js'
import type { Schedule } from '../executor/types.js'
import { isKept, type LayerProfile } from './profile.js'
import { type Plan, type PlanRequest, stepTimes } from './types.js'

/** @returns undefined if it does not fit */
export function planBaseline(
  { profile, inputBytes, batch, deviceMemory }: PlanRequest,
  schedule: Schedule,
  microbatch: number
): Plan | undefined {
  const { layers, bytesPerMs, head } = profile
  const isSplit = microbatch < batch
  const weights = layers.reduce((sum, { weightBytes }) => sum + weightBytes, 0)
  const gradients = layers.reduce((sum, { gradientBytes }) => sum + gradientBytes, 0)
  // Gradient sums: of all layers from the second microbatch on, of the layers above in the first.
  let sums = gradients
  let saved = microbatch * inputBytes
  let deviceBytes = 0
  // Bytes that stay on the device after the layer's forward pass.
  const retained = (layer: LayerProfile) => {
    const { activationBytes, outputBytes, hasBackward } = layer
    if (hasBackward) return microbatch * (activationBytes + outputBytes)
    return isKept(layers, layers.indexOf(layer)) ? microbatch * outputBytes : 0
  }
  for (const group of shuffleGroups(layers, [...layers.keys()])) {
    const members = group.map(l => layers[l])
    for (const { gradientBytes } of members) sums -= gradientBytes
    for (const layer of members) {
      const { gradientBytes, outputBytes, activationBytes, savingWork, savedWork } = layer
      // The other layers of the group may be executed before or after it.
      const others = members.filter(other => other !== layer)
      const below = others.reduce((sum, other) => sum + retained(other), 0)
      const beside = others.reduce(
        (sum, other) => sum + Math.max(retained(other), isSplit ? 0 : other.gradientBytes),
        0
      )
      const l = layers.indexOf(layer)
      const input = l > 0 && !isKept(layers, l - 1) ? microbatch * layers[l - 1].outputBytes : 0
      const vjp = microbatch * (activationBytes + outputBytes + savedWork.sample) + savedWork.fixed
      const work = isSplit ? Math.max(vjp, microbatch * activationBytes + 2 * gradientBytes) : vjp
      const forward =
        weights + (isSplit ? gradients : 0) + below + input + savingWork.fixed + microbatch * savingWork.sample
      const backward = weights + (isSplit ? gradients : sums) + beside + work
      deviceBytes = Math.max(deviceBytes, saved + forward, layer.hasBackward ? saved + backward : 0)
    }
    saved += members.reduce((sum, layer) => sum + retained(layer), 0)
  }
  const headBytes = saved + head.work.fixed + microbatch * head.work.sample
  const merge = Math.max(...layers.map(({ loadBytes, weightBytes }) => loadBytes - weightBytes))
  deviceBytes = Math.max(deviceBytes, weights + merge, weights + (isSplit ? gradients : 0) + headBytes)
  const times = layers.map(({ weightBytes, gradientBytes, forwardMs, savedVjpMs, share, from }) => {
    return { ms: share * ((weightBytes + gradientBytes) / bytesPerMs + batch * (forwardMs + savedVjpMs)), from }
  })
  const plan: Plan = {
    schedule,
    microbatch,
    stash: 'device',
    keeps: [],
    offloads: [],
    unstashed: [],
    resident: [],
    deviceOutputs: [],
    deviceBytes,
    stashBytes: 0,
    ...stepTimes(times, head.ms * batch)
  }
  return deviceBytes <= deviceMemory ? plan : undefined
}
