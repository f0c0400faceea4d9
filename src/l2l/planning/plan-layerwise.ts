/**
 * Plans layer-to-layer execution within the device's memory: a dynamic program over the layers decides which layers
 * save their activations instead of recomputing them, and which weights stay resident instead of being loaded again.
 * If the stash is on the host and the user has not asked for that, it also decides which outputs stay on the device.
 * Live while layer l is executed, in either direction: what the layers below have saved, their stashed outputs, and l's
 * own working memory.
 */
import { shuffleGroups } from '../../nn/layer-order.js'
import type { Schedule, StashLocation } from '../executor/types.js'
import { neighboursOf } from './neighbours.js'
import { isKept, type LayerProfile } from './profile.js'
import { type Plan, type PlanRequest, stepTimes } from './types.js'

/** Saved bytes are quantized to this many buckets of the device's memory. */
const BUCKETS = 256

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

interface State {
  readonly savedMs: number
  readonly savedBytes: number
  readonly keeps: readonly number[]
  readonly resident: readonly number[]
  readonly deviceOutputs: readonly number[]
  readonly peak: number
}

const INITIAL_STATE: State = {
  savedMs: 0,
  savedBytes: 0,
  keeps: [],
  resident: [],
  deviceOutputs: [],
  peak: 0
}

/** @returns undefined if nothing fits */
export function planLayerwise(
  task: PlanRequest,
  schedule: Schedule,
  microbatch: number,
  stash: StashLocation
): Plan | undefined {
  const { profile, batch, deviceMemory, precision } = task
  const { layers, bytesPerMs, head } = profile
  // In float32 samples: bfloat16 halves the size of the stash.
  const stashedBatch = precision === 'bf16' ? batch / 2 : batch
  const last = layers.length - 1
  const bucket = Number.isFinite(deviceMemory) ? deviceMemory / BUCKETS : Number.POSITIVE_INFINITY
  // The position of a layer in a group of shuffled ones is not known, and neither is what is on the device before it.
  const groups = shuffleGroups(layers, [...layers.keys()])
  const single = new Set(groups.flatMap(group => (group.length === 1 ? group : [])))
  const mayStay = (l: number) =>
    stash === 'host' && task.fixed.stash === undefined && single.has(l) && isKept(layers, l)
  // The best state for each number of saved buckets: one row of the dynamic program.
  let states = new Map<number, State>([[0, INITIAL_STATE]])
  for (const { l, live } of liveBytes(task, schedule, microbatch, stash === 'device' ? stashedBatch : 0)) {
    const { weightBytes, activationBytes, outputBytes, vjpMs, savedVjpMs, share, hasBackward } = layers[l]
    states = extend(states, l, deviceMemory, bucket, {
      live,
      activationBytes: batch * activationBytes,
      // The last layer always saves its activations, one microbatch at a time, and keeps its weights until its backward
      // pass.
      activationMs: l < last ? share * batch * (vjpMs - savedVjpMs) : 0,
      weightBytes,
      weightMs: l < last && hasBackward ? (share * weightBytes) / bytesPerMs : 0,
      outputBytes: stashedBatch * outputBytes,
      outputMs: l < last && mayStay(l) ? (share * stashCopies(layers[l], batch)) / bytesPerMs : 0
    })
    if (states.size === 0) return undefined
  }
  const { keeps, resident, deviceOutputs, peak } = [...states.values()].reduce((a, b) =>
    b.savedMs > a.savedMs ? b : a
  )
  const isSaved = layers.map((_, l) => l === last || keeps.includes(l))
  const isResident = layers.map((_, l) => l === last || resident.includes(l))
  const isStashed = layers.map((_, l) => l < last && stash !== 'device' && !deviceOutputs.includes(l))
  const times = layers.map((layer, l) => {
    const { weightBytes, gradientBytes, forwardMs, vjpMs, savedVjpMs, share, from, hasBackward } = layer
    const loads = isResident[l] || !hasBackward ? 1 : 2
    const stashed = isStashed[l] ? stashCopies(layer, batch) : 0
    const copies = loads * weightBytes + gradientBytes + stashed
    return { ms: share * (copies / bytesPerMs + batch * (forwardMs + (isSaved[l] ? savedVjpMs : vjpMs))), from }
  })
  const stashBytes = layers.reduce(
    (sum, { outputBytes }, l) => sum + (isStashed[l] && isKept(layers, l) ? stashedBatch * outputBytes : 0),
    0
  )
  return {
    schedule,
    microbatch,
    stash,
    keeps,
    resident,
    deviceOutputs,
    deviceBytes: peak,
    stashBytes,
    ...stepTimes(times, head.ms * batch)
  }
}

/**
 * Bytes between device and stash: an output is stored and read in the forward pass; for the backward pass it is read again, and its
 * gradient stored and read.
 */
function stashCopies({ outputBytes, hasBackward }: LayerProfile, batch: number): number {
  return (hasBackward ? 5 : 2) * batch * outputBytes
}

/**
 * Upper bound of the bytes on the device while a layer is executed, without saved activations and resident weights, for
 * any layers executed before and after it.
 * @param stashed samples whose outputs are stashed on the device
 */
function* liveBytes(
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
  let below = 0
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
      const forward = input + layer.forwardWork.fixed + microbatch * layer.forwardWork.sample + largestWeights(after[l])
      const isSplit = microbatch < batch
      const savingBytes = layer.savingWork.fixed + microbatch * layer.savingWork.sample
      const headBytes = microbatch * (layer.activationBytes + layer.outputBytes + head.work.sample) + head.work.fixed
      const lastLayer = ends.has(l) ? input + Math.max(savingBytes, headBytes) + (isSplit ? layer.gradientBytes : 0) : 0
      const backward = Math.max(lastLayer, backwardBytes(layer, input, microbatch, isSplit))
      // Includes the prefetched layer, unless the layer below is resident.
      const isCertain = before[l].size === 1
      return (isBelowResident: boolean) => {
        const ahead = isBelowResident && isCertain ? 0 : largestWeights(before[l])
        return (
          layer.weightBytes +
          below +
          stashedBytes +
          Math.max(layer.loadBytes - layer.weightBytes, forward, backward + ahead)
        )
      }
    })
    for (const [i, l] of group.entries()) {
      // The other layers of the group may already have saved their activations.
      const worst = () => Math.max(...each.map(live => live(false)))
      const bytes = group.length === 1 ? each[i] : worst
      yield { l, live: bytes }
    }
    if (isKept(layers, group[0])) below += outputBytes
  }
}

/** One layer of the dynamic program. */
interface Step {
  /** Bytes in use while it is executed, without saved activations and resident weights. */
  live(isBelowResident: boolean): number
  /** Memory and time of saving its activations, and of keeping its weights resident. */
  readonly activationBytes: number
  readonly activationMs: number
  readonly weightBytes: number
  readonly weightMs: number
  /** Memory and time of keeping its outputs, and later their gradients, on the device; no time if they cannot stay. */
  readonly outputBytes: number
  readonly outputMs: number
}

/** Extends all states by one layer: with and without saved activations, resident weights, and outputs on the device, as far as they fit. */
function extend(states: ReadonlyMap<number, State>, layer: number, limit: number, bucket: number, step: Step) {
  const next = new Map<number, State>()
  for (const before of states.values()) {
    const live = step.live(before.resident.at(-1) === layer - 1)
    for (const savesActivations of step.activationMs > 0 ? [false, true] : [false]) {
      for (const keepsOutputs of step.outputMs > 0 ? [false, true] : [false]) {
        const added = (savesActivations ? step.activationBytes : 0) + (keepsOutputs ? step.outputBytes : 0)
        const during = before.savedBytes + added
        if (during + live > limit) continue
        const savedMs = (savesActivations ? step.activationMs : 0) + (keepsOutputs ? step.outputMs : 0)
        for (const isResident of step.weightMs > 0 ? [false, true] : [false]) {
          const state: State = {
            savedMs: before.savedMs + savedMs + (isResident ? step.weightMs : 0),
            savedBytes: during + (isResident ? step.weightBytes : 0),
            keeps: savesActivations ? [...before.keeps, layer] : before.keeps,
            resident: isResident ? [...before.resident, layer] : before.resident,
            deviceOutputs: keepsOutputs ? [...before.deviceOutputs, layer] : before.deviceOutputs,
            peak: Math.max(before.peak, during + live)
          }
          const index = 2 * Math.ceil(state.savedBytes / bucket) + (isResident ? 1 : 0)
          const other = next.get(index)
          if (other === undefined || other.savedMs < state.savedMs) next.set(index, state)
        }
      }
    }
  }
  return next
}
