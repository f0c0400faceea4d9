/** Plans the baseline schedules: everything on the device at once. */
import { shuffleGroups } from '../../nn/layer-order.js'
import type { Schedule } from '../executor/types.js'
import type { LayerProfile } from './profile.js'
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
  // Gradient sums: of all layers from the second microbatch on, of the layers above in the first.
  let sums = weights
  let saved = microbatch * inputBytes
  let deviceBytes = 0
  // Bytes that stay on the device after the layer's forward pass.
  const retained = ({ activationBytes, outputBytes }: LayerProfile) => microbatch * (activationBytes + outputBytes)
  for (const group of shuffleGroups(layers, [...layers.keys()])) {
    const members = group.map(l => layers[l])
    for (const { weightBytes } of members) sums -= weightBytes
    for (const layer of members) {
      const { weightBytes, outputBytes, activationBytes, savingWork, savedWork } = layer
      // The other layers of the group may be executed before or after it.
      const others = members.filter(other => other !== layer)
      const below = others.reduce((sum, other) => sum + retained(other), 0)
      const beside = others.reduce((sum, other) => sum + Math.max(retained(other), isSplit ? 0 : other.weightBytes), 0)
      const vjp = microbatch * (activationBytes + outputBytes + savedWork.sample) + savedWork.fixed
      const work = isSplit ? Math.max(vjp, microbatch * activationBytes + 2 * weightBytes) : vjp
      const forward = weights + (isSplit ? weights : 0) + below + savingWork.fixed + microbatch * savingWork.sample
      const backward = weights + (isSplit ? weights : sums) + beside + work
      deviceBytes = Math.max(deviceBytes, saved + forward, saved + backward)
    }
    saved += members.reduce((sum, layer) => sum + retained(layer), 0)
  }
  const headBytes = saved + head.work.fixed + microbatch * head.work.sample
  deviceBytes = Math.max(deviceBytes, weights + (isSplit ? weights : 0) + headBytes)
  const times = layers.map(({ weightBytes, forwardMs, savedVjpMs, share, from }) => {
    return { ms: share * ((2 * weightBytes) / bytesPerMs + batch * (forwardMs + savedVjpMs)), from }
  })
  const plan: Plan = {
    schedule,
    microbatch,
    stash: 'device',
    keeps: [],
    resident: [],
    deviceBytes,
    stashBytes: 0,
    ...stepTimes(times, head.ms * batch)
  }
  return deviceBytes <= deviceMemory ? plan : undefined
}
