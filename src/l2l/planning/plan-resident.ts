/** What plain training takes: everything on the device at once. */
import { shuffleGroups } from '../../nn/layer-order.js'
import type { Schedule } from '../executor/types.js'
import type { LayerProfile } from './profile.js'
import { type Plan, type PlanRequest, stepTimes } from './task.js'

/** @returns undefined if it does not fit */
export function planBaseline(
  { profile, inputBytes, batch, deviceMemory }: PlanRequest,
  schedule: Schedule,
  microbatch: number
): Plan | undefined {
  const { layers, bytesPerMs, head } = profile
  const isSplit = microbatch < batch
  const weights = layers.reduce((sum, { weightBytes }) => sum + weightBytes, 0)
  // Sums of gradients: of all layers from the second microbatch on, else of those above.
  let sums = weights
  let insides = microbatch * inputBytes
  let deviceBytes = 0
  // What a layer leaves behind for those that come after it, and for those before.
  const leaves = ({ activationBytes, outputBytes }: LayerProfile) => microbatch * (activationBytes + outputBytes)
  for (const group of shuffleGroups(layers, [...layers.keys()])) {
    const members = group.map(l => layers[l])
    for (const { weightBytes } of members) sums -= weightBytes
    for (const layer of members) {
      const { weightBytes, outputBytes, activationBytes, savingWork, savedWork } = layer
      // Others of the group are before it or after it.
      const others = members.filter(other => other !== layer)
      const below = others.reduce((sum, other) => sum + leaves(other), 0)
      const beside = others.reduce((sum, other) => sum + Math.max(leaves(other), isSplit ? 0 : other.weightBytes), 0)
      const vjp = microbatch * (activationBytes + outputBytes + savedWork.sample) + savedWork.fixed
      const work = isSplit ? Math.max(vjp, microbatch * activationBytes + 2 * weightBytes) : vjp
      const forward = weights + (isSplit ? weights : 0) + below + savingWork.fixed + microbatch * savingWork.sample
      const backward = weights + (isSplit ? weights : sums) + beside + work
      deviceBytes = Math.max(deviceBytes, insides + forward, insides + backward)
    }
    insides += members.reduce((sum, layer) => sum + leaves(layer), 0)
  }
  const judged = insides + head.work.fixed + microbatch * head.work.sample
  deviceBytes = Math.max(deviceBytes, weights + (isSplit ? weights : 0) + judged)
  const parts = layers.map(({ weightBytes, forwardMs, savedVjpMs, share, from }) => {
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
    ...stepTimes(parts, head.ms * batch)
  }
  return deviceBytes <= deviceMemory ? plan : undefined
}
