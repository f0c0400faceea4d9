/**
 * The planner: of all ways to take a minibatch through a model within the device's memory, the fastest. For each microbatch
 * size and place of the stash, a dynamic programme along the layers decides which of them keep their insides instead of
 * computing them again, and which their weights instead of being loaded again. What is live while layer l is executed, in either
 * direction: what the layers below keep, their stashed outputs, and l's own work. (Times are added up: the backends at hand compute and copy on one thread.)
 */
import type { Precision, Schedule, StashPlace } from '../relay/types.js'
import type { DeviceProfile, LayerProfile } from './profile.js'

export interface Task {
  readonly profile: DeviceProfile
  /** Bytes a sample of the model's input. */
  readonly inputBytes: number
  /** Samples a minibatch. */
  readonly batch: number
  /** Most bytes on the device. */
  readonly deviceMemory: number
  readonly precision: Precision
  /** What has been decided already. */
  readonly fixed: { readonly schedule?: Schedule; readonly microbatch?: number; readonly stash?: StashPlace }
}

export interface Plan {
  readonly schedule: Schedule
  readonly microbatch: number
  readonly stash: StashPlace
  /** Numbers of the layers that keep their insides. */
  readonly keeps: readonly number[]
  /** Numbers of the layers whose weights stay on the device from the forward to the backward pass. */
  readonly resident: readonly number[]
  /** Expected: the most on the device, the most of stashed tensors on the host, and the time of a step. */
  readonly deviceBytes: number
  readonly stashBytes: number
  readonly stepMs: number
}

/** Kept bytes are counted in this many parts of the device's memory. */
const PARTS = 256

/**
 * @returns the fastest plan, or the layer that needs the most where nothing fits
 */
export function makePlan(task: Task): Plan | { readonly tooLarge: string; readonly needsBytes: number } {
  const { batch, fixed, profile } = task
  const plans: Plan[] = []
  for (const microbatch of fixed.microbatch ? [Math.min(batch, fixed.microbatch)] : halves(batch)) {
    if (fixed.schedule === undefined || fixed.schedule.startsWith('baseline')) {
      const schedule = fixed.schedule ?? 'baseline-ag'
      const plan = planResident(task, schedule, schedule === 'baseline' ? batch : microbatch)
      if (plan && fixed.stash === undefined) plans.push(plan)
    }
    if (fixed.schedule?.startsWith('baseline')) continue
    for (const stash of fixed.stash ? [fixed.stash] : (['device', 'host'] as const)) {
      const plan = planLayerwise(task, fixed.schedule ?? 'l2l-p', microbatch, stash)
      if (plan) plans.push(plan)
    }
  }
  if (plans.length > 0) return plans.reduce((best, plan) => (plan.stepMs < best.stepMs ? plan : best))
  const least = profile.layers.map(layer => layer.weightBytes + backwardBytes(layer, 0, 1, false))
  const needsBytes = Math.max(...least)
  return { tooLarge: profile.layers[least.indexOf(needsBytes)].name, needsBytes }
}

/** batch, batch/2, … 1, rounded up. */
function halves(batch: number): number[] {
  const sizes = [batch]
  for (let size = batch; size > 1; ) {
    size = Math.ceil(size / 2)
    sizes.push(size)
  }
  return sizes
}

/**
 * One layer's backward pass of a microbatch beside its weights: input, gradient at the output, the VJP's own work and the sum of
 * earlier gradients; or, if that is more, the moment when gradients are added to their sum.
 */
function backwardBytes(layer: LayerProfile, input: number, microbatch: number, isSplit: boolean): number {
  const { weightBytes, outputBytes, work } = layer
  const vjp = input + work.fixed + microbatch * (outputBytes + work.sample)
  return isSplit ? weightBytes + Math.max(vjp, 2 * weightBytes) : vjp
}

function planResident({ profile, inputBytes, batch, deviceMemory }: Task, schedule: Schedule, microbatch: number) {
  const { layers, bytesPerMs } = profile
  const weights = layers.reduce((sum, { weightBytes }) => sum + weightBytes, 0)
  // Sums of gradients: of all layers from the second microbatch on, else of those above.
  let sums = microbatch < batch ? 0 : weights
  let insides = microbatch * inputBytes
  let deviceBytes = 0
  let stepMs = (2 * weights) / bytesPerMs
  for (const { weightBytes, outputBytes, insideBytes, forwardMs, keptVjpMs, keptWork } of layers) {
    insides += microbatch * insideBytes
    sums -= microbatch < batch ? 0 : weightBytes
    const held = microbatch < batch ? weights : sums
    const vjp = microbatch * (outputBytes + keptWork.sample) + keptWork.fixed
    const live = insides + (microbatch < batch ? Math.max(vjp, 2 * weightBytes) : vjp)
    deviceBytes = Math.max(deviceBytes, weights + held + live)
    insides += microbatch * outputBytes
    stepMs += batch * (forwardMs + keptVjpMs)
  }
  const plan: Plan = {
    schedule,
    microbatch,
    stash: 'device',
    keeps: [],
    resident: [],
    deviceBytes,
    stashBytes: 0,
    stepMs
  }
  return deviceBytes <= deviceMemory ? plan : undefined
}

interface State {
  readonly savedMs: number
  readonly keptBytes: number
  readonly keeps: readonly number[]
  readonly resident: readonly number[]
  readonly peak: number
}

const NOTHING_KEPT: State = { savedMs: 0, keptBytes: 0, keeps: [], resident: [], peak: 0 }

function planLayerwise(task: Task, schedule: Schedule, microbatch: number, stash: StashPlace): Plan | undefined {
  const { profile, inputBytes, batch, deviceMemory, precision } = task
  const { layers, bytesPerMs } = profile
  // Samples whose outputs at float32 would take what the minibatch's take in the stash.
  const stashedBatch = precision === 'bf16' ? batch / 2 : batch
  const last = layers.length - 1
  const isSplit = microbatch < batch
  const part = Number.isFinite(deviceMemory) ? deviceMemory / PARTS : Number.POSITIVE_INFINITY
  // Best state by kept parts: the dynamic programme's row.
  let states = new Map<number, State>([[0, NOTHING_KEPT]])
  let stashed = 0
  let stashBytes = 0
  let stepMs = 0
  for (const [l, layer] of layers.entries()) {
    const { weightBytes, outputBytes, insideBytes, forwardMs, vjpMs, keptVjpMs, forwardWork } = layer
    const above = schedule === 'l2l-p' ? (layers[l + 1]?.weightBytes ?? 0) : 0
    const below = schedule === 'l2l-p' ? (layers[l - 1]?.weightBytes ?? 0) : 0
    const input = microbatch * (l === 0 ? inputBytes : layers[l - 1].outputBytes)
    // With the stash on the device, this layer's outputs, and then the gradients there, wait there for all microbatches.
    const waiting = stash === 'device' && l < last ? stashedBatch * outputBytes : 0
    const forward = input + forwardWork.fixed + microbatch * forwardWork.sample
    const backward = backwardBytes(layer, input, microbatch, isSplit)
    states = extend(states, l, deviceMemory, part, {
      // With what is loaded ahead; the layer below is not where it never left.
      live: isBelowResident =>
        weightBytes + stashed + waiting + Math.max(forward + above, backward + (isBelowResident ? 0 : below)),
      insideBytes: batch * insideBytes,
      // The last layer keeps its insides anyway, one microbatch at a time, and turns while its weights are there.
      insideMs: l < last ? batch * (vjpMs - keptVjpMs) : 0,
      weightBytes,
      weightMs: l < last ? weightBytes / bytesPerMs : 0
    })
    if (states.size === 0) return undefined
    stepMs += ((l < last ? 3 : 2) * weightBytes) / bytesPerMs
    stepMs += batch * (l < last ? forwardMs + vjpMs : forwardMs + keptVjpMs)
    if (l < last && stash === 'device') stashed += stashedBatch * outputBytes
    if (l < last && stash !== 'device') {
      stashBytes += stashedBatch * outputBytes
      stepMs += (5 * batch * outputBytes) / bytesPerMs
    }
  }
  const best = [...states.values()].reduce((a, b) => (b.savedMs > a.savedMs ? b : a))
  const { keeps, resident, peak } = best
  return { schedule, microbatch, stash, keeps, resident, deviceBytes: peak, stashBytes, stepMs: stepMs - best.savedMs }
}

/** One layer, as the dynamic programme sees it. */
interface Step {
  /** Bytes in use while it is executed, beside what is kept. */
  live(isBelowResident: boolean): number
  /** What keeping its insides takes and saves, and what keeping its weights does. */
  readonly insideBytes: number
  readonly insideMs: number
  readonly weightBytes: number
  readonly weightMs: number
}

/** One layer further: it keeps its insides or not, and its weights or not, as far as that fits. */
function extend(states: ReadonlyMap<number, State>, layer: number, limit: number, part: number, step: Step) {
  const next = new Map<number, State>()
  for (const before of states.values()) {
    const live = step.live(before.resident.at(-1) === layer - 1)
    for (const keepsInsides of step.insideMs > 0 ? [false, true] : [false]) {
      const during = before.keptBytes + (keepsInsides ? step.insideBytes : 0)
      if (during + live > limit) continue
      for (const isResident of step.weightMs > 0 ? [false, true] : [false]) {
        const state: State = {
          savedMs: before.savedMs + (keepsInsides ? step.insideMs : 0) + (isResident ? step.weightMs : 0),
          keptBytes: during + (isResident ? step.weightBytes : 0),
          keeps: keepsInsides ? [...before.keeps, layer] : before.keeps,
          resident: isResident ? [...before.resident, layer] : before.resident,
          peak: Math.max(before.peak, during + live)
        }
        const place = 2 * Math.ceil(state.keptBytes / part) + (isResident ? 1 : 0)
        const other = next.get(place)
        if (other === undefined || other.savedMs < state.savedMs) next.set(place, state)
      }
    }
  }
  return next
}
