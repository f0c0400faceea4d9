/**
 * Plans layer-to-layer execution within the device's memory: a dynamic program over the layers decides which layers save their
 * activations instead of recomputing them, and which weights stay resident instead of being loaded again. If the user has not
 * asked for a stash, it also decides which activations move to the host, and, if the stash is there, which outputs stay on the
 * device. With the stash on the device, it divides the layers into segments: only the output of the last layer of a segment is
 * stashed, and those of the others are recomputed together in the backward pass.
 * Bounds come from the bytes on the device while a layer is executed, in either direction.
 */
import type { LayerPlan, Schedule, StashLocation } from '../executor/types.js'
import { isKept, type LayerProfile, neighboursOf, type Work } from './profile.js'
import { againMs, isStashed, layerTimes, offloadCopies, stashCopies } from './times.js'
import { type Plan, type PlanRequest, stepTimes } from './types.js'

/** Saved bytes are quantized to this many buckets of the device's memory. */
const BUCKETS = 256
/** Most layers of a segment. */
const MOST_LAYERS = 16

/** @returns undefined if nothing fits */
export function planLayerwise(
  task: PlanRequest,
  schedule: Schedule,
  microbatch: number,
  stash: StashLocation
): Plan | undefined {
  const { profile, batch, deviceMemory } = task
  const { layers, bytesPerMs, head } = profile
  const last = layers.length - 1
  const bucket = Number.isFinite(deviceMemory) ? deviceMemory / BUCKETS : Number.POSITIVE_INFINITY
  const mayStay = (l: number) => stash === 'host' && task.fixed.stash === undefined && isKept(layers, l)
  const offloadMs = task.fixed.stash === undefined ? offloadGains(task) : new Map<number, number>()
  const steps = [...liveBytes(task, schedule, microbatch, stash === 'device' ? batch : 0)].map(
    ({ l, live, stashed, staying }): Step => {
      const { weightBytes, activationBytes, outputBytes, vjpMs, savedVjpMs, share, hasBackward } = layers[l]
      return {
        live,
        stashed,
        staying,
        activationBytes: batch * activationBytes,
        // The last layer always saves its activations, one microbatch at a time, and keeps its weights until its backward
        // pass.
        activationMs: l < last ? share * batch * (vjpMs - savedVjpMs) : 0,
        offloadMs: offloadMs.get(l) ?? 0,
        weightBytes,
        weightMs: l < last && hasBackward ? (share * weightBytes) / bytesPerMs : 0,
        outputBytes: batch * outputBytes,
        outputMs: l < last && mayStay(l) ? (share * stashCopies(layers[l], batch)) / bytesPerMs : 0,
        againMs: againMs(layers[l], batch, bytesPerMs)
      }
    }
  )
  // Where layers may be absent, segments may become longer.
  const isFixed = layers.every(({ share, from }) => share === 1 && from === 0)
  const longest = stash === 'device' && isFixed && Number.isFinite(deviceMemory) ? MOST_LAYERS : 1
  // The best state before each layer for each number of saved buckets: the rows of the dynamic program.
  const rows = Array.from({ length: layers.length + 1 }, () => new Map<number, State>())
  rows[0].set(0, INITIAL_STATE)
  for (let l = 0; l <= last; l++) {
    extend(rows[l], rows[l + 1], deviceMemory, bucket, steps[l])
    if (!layers[l].hasBackward) continue
    for (let end = l + 1; end < Math.min(last, l + longest); end++)
      extendBySegment(rows[l], rows[end + 1], [l, end], deviceMemory, bucket, steps)
  }
  if (rows[last + 1].size === 0) return undefined
  const best = [...rows[last + 1].values()].reduce((a, b) => (b.savedMs > a.savedMs ? b : a))
  const plans = plansOf(best.chosen)
  const isOffloaded = (l: number) => plans[l].activations === 'host'
  const times = layerTimes(profile, { schedule, stash, layers: plans }, batch)
  const stashBytes = layers.reduce(
    (sum, { outputBytes, activationBytes }, l) =>
      sum +
      (isStashed({ schedule, stash, layers: plans }, l) && isKept(layers, l) ? batch * outputBytes : 0) +
      (isOffloaded(l) ? batch * activationBytes : 0),
    0
  )
  return {
    schedule,
    microbatch,
    stash,
    layers: plans,
    deviceBytes: best.peak,
    stashBytes,
    ...stepTimes(times, head.ms * batch)
  }
}

/** The layers whose activations may move to the host, with the time that this saves: those that save most for their bytes. */
function offloadGains({ profile, batch, hostMemory }: PlanRequest): ReadonlyMap<number, number> {
  const { layers, bytesPerMs } = profile
  const gains = layers.slice(0, -1).map((layer, l) => {
    const { share, vjpMs, savedVjpMs, activationBytes } = layer
    const ms = share * (batch * (vjpMs - savedVjpMs) - offloadCopies(layer, batch) / bytesPerMs)
    return { l, ms, bytes: batch * activationBytes }
  })
  const chosen = new Map<number, number>()
  let left = hostMemory
  for (const { l, ms, bytes } of gains.sort((a, b) => b.ms / b.bytes - a.ms / a.bytes)) {
    if (ms <= 0 || bytes === 0 || bytes > left) continue
    chosen.set(l, ms)
    left -= bytes
  }
  return chosen
}

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
  for (const [l, layer] of layers.entries()) {
    // With the stash on the device, the outputs and later the output gradients of all microbatches are on the device.
    const outputBytes = l < last ? stashed * layer.outputBytes : 0
    // Below the first layer that is trained, the outputs of two layers.
    const dropped = l > 0 && !isKept(layers, l - 1) ? stashed * layers[l - 1].outputBytes : 0
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
    const live = (isBelowResident: boolean, isOffloaded = false) => {
      const ahead = isBelowResident && isCertain ? 0 : largestWeights(before[l])
      const forward = forwardOf(isOffloaded ? layer.savingWork : layer.forwardWork)
      const backward = backwardOf(isOffloaded ? loaded : layer.work)
      return layer.weightBytes + Math.max(layer.loadBytes - layer.weightBytes, forward, backward + ahead)
    }
    yield { l, live, stashed: outputBytes + dropped, staying: isKept(layers, l) ? outputBytes : 0 }
  }
}

/** What is done with a layer, and with the layers below. States share the choices that they have in common. */
interface Chosen {
  readonly plan: LayerPlan
  readonly below: Chosen | undefined
}

/** From the lowest layer on. */
function plansOf(chosen: Chosen | undefined): LayerPlan[] {
  const plans: LayerPlan[] = []
  for (let at = chosen; at !== undefined; at = at.below) plans.push(at.plan)
  return plans.reverse()
}

/**
 * The states of the planner's dynamic program: what has been decided for the layers below, of which the best is kept for each number of
 * saved buckets.
 */
interface State {
  readonly savedMs: number
  readonly savedBytes: number
  readonly chosen: Chosen | undefined
  readonly peak: number
}

const INITIAL_STATE: State = { savedMs: 0, savedBytes: 0, chosen: undefined, peak: 0 }

/** One layer of the dynamic program. */
interface Step {
  /** Bytes in use while it is executed, without saved activations, resident weights and stashed outputs. */
  live(isBelowResident: boolean, isOffloaded?: boolean): number
  /** Bytes of outputs on the device while it is executed, and of those that stay for the backward pass. */
  readonly stashed: number
  readonly staying: number
  /** Memory and time of saving its activations, and of keeping its weights resident. */
  readonly activationBytes: number
  readonly activationMs: number
  /** Time of saving its activations on the host; none if they cannot move there. */
  readonly offloadMs: number
  readonly weightBytes: number
  readonly weightMs: number
  /** Memory and time of keeping its outputs, and later their gradients, on the device; no time if they cannot stay. */
  readonly outputBytes: number
  readonly outputMs: number
  /** Time of recomputing its outputs. */
  readonly againMs: number
}

/** What a state is compared by: the time that it saves, for the number of saved buckets and whether the last layer is resident. */
interface Value {
  readonly savedMs: number
  readonly savedBytes: number
  readonly isResident: boolean
}

/** Keeps the state if it is the best one with its number of saved buckets. It is created only then. */
function keepBest(
  next: Map<number, State>,
  bucket: number,
  { savedMs, savedBytes, isResident }: Value,
  create: () => State
): void {
  const index = 2 * Math.ceil(savedBytes / bucket) + (isResident ? 1 : 0)
  const other = next.get(index)
  if (other === undefined || other.savedMs < savedMs) next.set(index, create())
}

/**
 * Extends all states by one layer: with and without saved activations, on the device or on the host, resident weights, and outputs on
 * the device, as far as they fit.
 */
function extend(
  states: ReadonlyMap<number, State>,
  next: Map<number, State>,
  limit: number,
  bucket: number,
  step: Step
): void {
  const { activationBytes, activationMs, offloadMs, outputBytes, outputMs, weightBytes, weightMs } = step
  const choices = [
    { bytes: 0, ms: 0, place: 'recomputed' as const },
    ...(activationMs > 0 ? [{ bytes: activationBytes, ms: activationMs, place: 'device' as const }] : []),
    ...(offloadMs > 0 ? [{ bytes: 0, ms: offloadMs, place: 'host' as const }] : [])
  ].map(choice => ({
    ...choice,
    liveBytes: step.stashed + step.live(false, choice.place === 'host'),
    liveAboveResident: step.stashed + step.live(true, choice.place === 'host')
  }))
  for (const before of states.values()) {
    const isBelowResident = before.chosen?.plan.isResident
    for (const { bytes, ms, place: activations, liveBytes, liveAboveResident } of choices) {
      const live = isBelowResident ? liveAboveResident : liveBytes
      for (const keepsOutputs of outputMs > 0 ? [false, true] : [false]) {
        const during = before.savedBytes + bytes + (keepsOutputs ? outputBytes : 0)
        if (during + live > limit) continue
        for (const isResident of weightMs > 0 ? [false, true] : [false]) {
          const savedMs = before.savedMs + ms + (keepsOutputs ? outputMs : 0) + (isResident ? weightMs : 0)
          const savedBytes = during + step.staying + (isResident ? weightBytes : 0)
          keepBest(next, bucket, { savedMs, savedBytes, isResident }, () => ({
            savedMs,
            savedBytes,
            chosen: {
              plan: { activations, outputs: keepsOutputs ? 'device' : 'stash', isResident },
              below: before.chosen
            },
            peak: Math.max(before.peak, during + live)
          }))
        }
      }
    }
  }
}

/**
 * Extends all states by a segment of layers, which save nothing else. While they are executed, the outputs of all of them are on the
 * device, and then only those of the last one.
 */
function extendBySegment(
  states: ReadonlyMap<number, State>,
  next: Map<number, State>,
  [from, to]: readonly [number, number],
  limit: number,
  bucket: number,
  steps: readonly Step[]
): void {
  const segment = steps.slice(from, to + 1)
  const inner = segment.slice(0, -1)
  const outputs = segment.reduce((sum, { staying }) => sum + staying, 0)
  // Below the first layer that is trained, the outputs of two layers are on the device.
  const input = steps[from].stashed - steps[from].staying
  const lostMs = inner.reduce((sum, { againMs }) => sum + againMs, 0)
  const [most, mostAboveResident] = [false, true].map(isBelowResident =>
    Math.max(...segment.map(({ live }, k) => live(k === 0 && isBelowResident)))
  )
  for (const before of states.values()) {
    const live = before.chosen?.plan.isResident ? mostAboveResident : most
    const during = before.savedBytes + input + outputs + live
    if (during > limit) continue
    const savedMs = before.savedMs - lostMs
    const savedBytes = before.savedBytes + steps[to].staying
    keepBest(next, bucket, { savedMs, savedBytes, isResident: false }, () => ({
      savedMs,
      savedBytes,
      chosen: segment.reduce<Chosen | undefined>(
        (below, step) => ({ plan: step === segment.at(-1) ? {} : { outputs: 'recomputed' }, below }),
        before.chosen
      ),
      peak: Math.max(before.peak, during)
    }))
  }
}
