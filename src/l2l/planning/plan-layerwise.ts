/**
 * Layer to layer within the device's memory: a dynamic programme along the layers decides which of them keep their insides instead of
 * computing them again, and which their weights instead of being loaded again. What is live while layer l is executed, in either
 * direction: what the layers below keep, their stashed outputs, and l's own work.
 */
import { shuffleGroups } from '../../nn/layer-order.js'
import type { Schedule, StashLocation } from '../executor/types.js'
import { neighboursOf } from './neighbours.js'
import type { LayerProfile } from './profile.js'
import { type Plan, type PlanRequest, stepTimes } from './task.js'

/** Kept bytes are counted in this many parts of the device's memory. */
const BUCKETS = 256

/**
 * One layer's backward pass of a microbatch beside its weights: input, gradient at the output, the VJP's own work and the sum of
 * earlier gradients; or, if that is more, the moment when gradients are added to their sum.
 */
export function backwardBytes(layer: LayerProfile, input: number, microbatch: number, isSplit: boolean): number {
  const { weightBytes, outputBytes, work } = layer
  const vjp = input + work.fixed + microbatch * (outputBytes + work.sample)
  return isSplit ? weightBytes + Math.max(vjp, 2 * weightBytes) : vjp
}

interface State {
  readonly savedMs: number
  readonly savedBytes: number
  readonly keeps: readonly number[]
  readonly resident: readonly number[]
  readonly peak: number
}

const INITIAL_STATE: State = { savedMs: 0, savedBytes: 0, keeps: [], resident: [], peak: 0 }

/** @returns undefined if nothing fits */
export function planLayerwise(
  task: PlanRequest,
  schedule: Schedule,
  microbatch: number,
  stash: StashLocation
): Plan | undefined {
  const { profile, batch, deviceMemory, precision } = task
  const { layers, bytesPerMs, head } = profile
  // Samples whose outputs at float32 would take what the minibatch's take in the stash.
  const stashedBatch = precision === 'bf16' ? batch / 2 : batch
  const last = layers.length - 1
  const part = Number.isFinite(deviceMemory) ? deviceMemory / BUCKETS : Number.POSITIVE_INFINITY
  // Best state by kept parts: the dynamic programme's row.
  let states = new Map<number, State>([[0, INITIAL_STATE]])
  for (const { l, live } of liveBytes(task, schedule, microbatch, stash === 'device' ? stashedBatch : 0)) {
    const { weightBytes, activationBytes, vjpMs, savedVjpMs, share } = layers[l]
    states = extend(states, l, deviceMemory, part, {
      live,
      activationBytes: batch * activationBytes,
      // The last layer keeps its insides anyway, one microbatch at a time, and turns while its weights are there.
      activationMs: l < last ? share * batch * (vjpMs - savedVjpMs) : 0,
      weightBytes,
      weightMs: l < last ? (share * weightBytes) / bytesPerMs : 0
    })
    if (states.size === 0) return undefined
  }
  const { keeps, resident, peak } = [...states.values()].reduce((a, b) => (b.savedMs > a.savedMs ? b : a))
  const isKept = layers.map((_, l) => l === last || keeps.includes(l))
  const isResident = layers.map((_, l) => l === last || resident.includes(l))
  const isStashed = layers.map((_, l) => l < last && stash !== 'device')
  const parts = layers.map(({ weightBytes, outputBytes, forwardMs, vjpMs, savedVjpMs, share, from }, l) => {
    const copies = (isResident[l] ? 2 : 3) * weightBytes + (isStashed[l] ? 5 * batch * outputBytes : 0)
    return { ms: share * (copies / bytesPerMs + batch * (forwardMs + (isKept[l] ? savedVjpMs : vjpMs))), from }
  })
  const stashBytes = layers.reduce(
    (sum, { outputBytes }, l) => sum + (isStashed[l] ? stashedBatch * outputBytes : 0),
    0
  )
  return {
    schedule,
    microbatch,
    stash,
    keeps,
    resident,
    deviceBytes: peak,
    stashBytes,
    ...stepTimes(parts, head.ms * batch)
  }
}

/**
 * What is on the device at most while a layer is executed, beside what layers keep, whichever layers are executed before and after it.
 * @param stashed samples whose outputs wait on the device
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
  const heaviest = (among: ReadonlySet<number>) =>
    schedule === 'l2l-p' ? Math.max(0, ...[...among].map(l => layers[l].weightBytes)) : 0
  let below = 0
  for (const group of shuffleGroups(layers, [...layers.keys()])) {
    // With the stash on the device, outputs, and then the gradients there, wait there for all microbatches. Those of the group
    // have one size, and each of its layers may be the last of them.
    const waiting = group.reduce((sum, l) => sum + (l < last ? stashed * layers[l].outputBytes : 0), 0)
    const each = group.map(l => {
      const layer = layers[l]
      const input = microbatch * (l === 0 ? inputBytes : layers[l - 1].outputBytes)
      const forward = input + layer.forwardWork.fixed + microbatch * layer.forwardWork.sample + heaviest(after[l])
      const isSplit = microbatch < batch
      const kept = layer.savingWork.fixed + microbatch * layer.savingWork.sample
      const judged = microbatch * (layer.activationBytes + layer.outputBytes + head.work.sample) + head.work.fixed
      const lastLayer = ends.has(l) ? input + Math.max(kept, judged) + (isSplit ? layer.weightBytes : 0) : 0
      const backward = Math.max(lastLayer, backwardBytes(layer, input, microbatch, isSplit))
      // With what is loaded ahead; the layer below is not where it lastLayer left.
      const isSure = before[l].size === 1
      return (isBelowResident: boolean) => {
        const ahead = isBelowResident && isSure ? 0 : heaviest(before[l])
        return layer.weightBytes + below + waiting + Math.max(forward, backward + ahead)
      }
    })
    for (const [i, l] of group.entries()) {
      // What others of the group keep may be there already.
      const worst = () => Math.max(...each.map(live => live(false)))
      const bytes = group.length === 1 ? each[i] : worst
      yield { l, live: bytes }
    }
    below += waiting
  }
}

/** One layer, as the dynamic programme sees it. */
interface Step {
  /** Bytes in use while it is executed, beside what is kept. */
  live(isBelowResident: boolean): number
  /** What keeping its insides takes and saves, and what keeping its weights does. */
  readonly activationBytes: number
  readonly activationMs: number
  readonly weightBytes: number
  readonly weightMs: number
}

/** One layer further: it keeps its insides or not, and its weights or not, as far as that fits. */
function extend(states: ReadonlyMap<number, State>, layer: number, limit: number, part: number, step: Step) {
  const next = new Map<number, State>()
  for (const before of states.values()) {
    const live = step.live(before.resident.at(-1) === layer - 1)
    for (const keepsInsides of step.activationMs > 0 ? [false, true] : [false]) {
      const during = before.savedBytes + (keepsInsides ? step.activationBytes : 0)
      if (during + live > limit) continue
      for (const isResident of step.weightMs > 0 ? [false, true] : [false]) {
        const state: State = {
          savedMs: before.savedMs + (keepsInsides ? step.activationMs : 0) + (isResident ? step.weightMs : 0),
          savedBytes: during + (isResident ? step.weightBytes : 0),
          keeps: keepsInsides ? [...before.keeps, layer] : before.keeps,
          resident: isResident ? [...before.resident, layer] : before.resident,
          peak: Math.max(before.peak, during + live)
        }
        const place = 2 * Math.ceil(state.savedBytes / part) + (isResident ? 1 : 0)
        const other = next.get(place)
        if (other === undefined || other.savedMs < state.savedMs) next.set(place, state)
      }
    }
  }
  return next
}
