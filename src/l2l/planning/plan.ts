/**
 * The planner: of all ways to take a minibatch through a model within the device's memory, the fastest. For each microbatch
 * size and place of the stash, a dynamic programme along the layers decides which of them keep their insides instead of
 * computing them again. What is live while layer l is executed, in either direction: the kept insides and stashed outputs of the
 * layers below, and l's own work. (Times are added up: the backends at hand compute and copy on one thread.)
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
  const plan: Plan = { schedule, microbatch, stash: 'device', keeps: [], deviceBytes, stashBytes: 0, stepMs }
  return deviceBytes <= deviceMemory ? plan : undefined
}

interface State {
  readonly savedMs: number
  readonly keptBytes: number
  readonly keeps: readonly number[]
  readonly peak: number
}

function planLayerwise(task: Task, schedule: Schedule, microbatch: number, stash: StashPlace): Plan | undefined {
  const { profile, inputBytes, batch, deviceMemory, precision } = task
  const { layers, bytesPerMs } = profile
  // Samples whose outputs at float32 would take what the minibatch's take in the stash.
  const stashedBatch = precision === 'bf16' ? batch / 2 : batch
  const last = layers.length - 1
  const isSplit = microbatch < batch
  const part = Number.isFinite(deviceMemory) ? deviceMemory / PARTS : Number.POSITIVE_INFINITY
  // Best state by kept parts: the dynamic programme's row.
  let states = new Map<number, State>([[0, { savedMs: 0, keptBytes: 0, keeps: [], peak: 0 }]])
  let stashed = 0
  let stashBytes = 0
  let stepMs = 0
  for (const [l, layer] of layers.entries()) {
    const { weightBytes, outputBytes, insideBytes, forwardMs, vjpMs, keptVjpMs } = layer
    const ahead = schedule === 'l2l-p' ? Math.max(layers[l - 1]?.weightBytes ?? 0, layers[l + 1]?.weightBytes ?? 0) : 0
    const input = microbatch * (l === 0 ? inputBytes : layers[l - 1].outputBytes)
    // With the stash on the device, the gradients at this layer's outputs wait there too, for all microbatches.
    const gradients = stash === 'device' && l < last ? stashedBatch * outputBytes : 0
    const live = weightBytes + ahead + backwardBytes(layer, input, microbatch, isSplit) + stashed + gradients
    states = extend(states, live, deviceMemory, part, {
      layer: l,
      bytes: batch * insideBytes,
      // The last layer keeps its insides anyway, one microbatch at a time.
      savedMs: l < last ? batch * (vjpMs - keptVjpMs) : 0
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
  const { keeps, peak } = best
  return { schedule, microbatch, stash, keeps, deviceBytes: peak, stashBytes, stepMs: stepMs - best.savedMs }
}

/** One layer further: it keeps its insides or not, as far as that fits while it is executed. */
function extend(
  states: ReadonlyMap<number, State>,
  live: number,
  limit: number,
  part: number,
  own: { readonly layer: number; readonly bytes: number; readonly savedMs: number }
): Map<number, State> {
  const next = new Map<number, State>()
  const put = (state: State) => {
    if (state.peak > limit) return
    const place = Math.ceil(state.keptBytes / part)
    const other = next.get(place)
    if (other === undefined || other.savedMs < state.savedMs) next.set(place, state)
  }
  for (const { savedMs, keptBytes, keeps, peak } of states.values()) {
    put({ savedMs, keptBytes, keeps, peak: Math.max(peak, keptBytes + live) })
    if (own.savedMs <= 0) continue
    const kept = keptBytes + own.bytes
    put({
      savedMs: savedMs + own.savedMs,
      keptBytes: kept,
      keeps: [...keeps, own.layer],
      peak: Math.max(peak, kept + live)
    })
  }
  return next
}
