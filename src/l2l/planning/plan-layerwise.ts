/**
 * Plans layer-to-layer execution within the device's memory: a dynamic program over the layers decides which layers save their
 * activations instead of recomputing them, and which weights stay resident instead of being loaded again. If the user has not
 * asked for a stash, it also decides which activations move to the host, and, if the stash is there, which outputs stay on the
 * device. With the stash on the device, it divides the layers into segments: only the output of the last layer of a segment is
 * stashed, and those of the others are recomputed in the backward pass, in nested sweeps.
 * Bounds come from the bytes on the device while a layer is executed, in either direction.
 */
import type { LayerPlan, Schedule, StashLocation } from '../executor/types.js'
import { bytesAt, isKept, type LayerProfile, neighboursOf, type Work } from './profile.js'
import { fitting, plansOfSegment, type SegmentLayer, type SegmentPlan, segmentPlans } from './segments.js'
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
    ({ l, live, dropped, stashed, staying }): Step => {
      const { weightBytes, activationBytes, outputBytes, vjpMs, savedVjpMs, share, hasBackward } = layers[l]
      return {
        live,
        dropped,
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
  const ways = segmentPlans(steps.slice(0, last).map(segmentLayer), longest, deviceMemory, bucket)
  // The best state before each layer for each number of saved buckets: the rows of the dynamic program.
  const rows = Array.from({ length: layers.length + 1 }, () => new States())
  rows[0].improve({ savedMs: 0, savedBytes: 0, peak: 0 }, bucket, -1, [])
  for (let l = 0; l <= last; l++) {
    extend(rows[l], rows[l + 1], deviceMemory, bucket, steps[l])
    if (!layers[l].hasBackward) continue
    for (let end = l + 1; end < Math.min(last, l + longest); end++) {
      const front = ways(l, end)
      const segment = { front, input: steps[l].dropped, staying: steps[end].staying }
      if (front.length > 0) extendBySegment(rows[l], rows[end + 1], deviceMemory, bucket, segment)
    }
  }
  const best = rows[last + 1].best()
  if (best === undefined) return undefined
  const plans = plansOf(rows, best)
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
    deviceBytes: rows[last + 1].peak[best],
    stashBytes,
    ...stepTimes(times, head.ms * batch)
  }
}

/** The layers whose activations may move to the host, with the time that this saves: those that save most for their bytes. */
export function offloadGains({ profile, batch, hostMemory }: PlanRequest): ReadonlyMap<number, number> {
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
  const vjp = input + microbatch * outputBytes + bytesAt(work, microbatch)
  return isSplit ? gradientBytes + Math.max(vjp, 2 * gradientBytes) : vjp
}

/**
 * Upper bound of the bytes on the device while a layer is executed, without saved activations and resident weights, for
 * any layers executed before and after it. `live` is without outputs that are stashed on the device; `stashed` are those while the
 * layer is executed, without those of layers below, and `staying` those that remain while the layers above are executed.
 * @param stashed samples whose outputs are stashed on the device
 */
export function* liveBytes(
  { profile, inputBytes, batch }: Pick<PlanRequest, 'profile' | 'inputBytes' | 'batch'>,
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
    const forwardOf = (work: Work) => input + bytesAt(work, microbatch) + largestWeights(after[l])
    const isSplit = microbatch < batch
    const savingBytes = bytesAt(layer.savingWork, microbatch)
    const headBytes = microbatch * (layer.activationBytes + layer.outputBytes) + bytesAt(head.work, microbatch)
    const lastLayer = ends.has(l) ? input + Math.max(savingBytes, headBytes) + (isSplit ? layer.gradientBytes : 0) : 0
    const backwardOf = (work: Work) =>
      Math.max(lastLayer, backwardBytes({ ...layer, work }, input, microbatch, isSplit))
    // In few bits, a layer has its exact activations as well while it packs them and after it has read them.
    const packing = input + savingBytes - microbatch * layer.activationBytes + largestWeights(after[l])
    const loaded = layer.savedWork.map(({ fixed, sample }) => ({ fixed, sample: sample + layer.activationBytes }))
    // Includes the prefetched layer, unless the layer below is resident.
    const isCertain = before[l].size === 1
    const live = (isBelowResident: boolean, isOffloaded = false) => {
      const ahead = isBelowResident && isCertain ? 0 : largestWeights(before[l])
      const forward = isOffloaded ? forwardOf(layer.savingWork) : Math.max(packing, forwardOf(layer.forwardWork))
      const backward = isOffloaded ? backwardOf(loaded) : Math.max(backwardOf(layer.savedWork), backwardOf(layer.work))
      return layer.weightBytes + Math.max(layer.loadBytes - layer.weightBytes, forward, backward + ahead)
    }
    // The output of the only microbatch, and later its gradient, are in `live`.
    yield {
      l,
      live,
      dropped,
      stashed: (isSplit ? outputBytes : 0) + dropped,
      staying: isKept(layers, l) ? outputBytes : 0
    }
  }
}

/** What a state is compared by, and the peak of the bytes on the device. */
interface Value {
  readonly savedMs: number
  readonly savedBytes: number
  readonly peak: number
}

/**
 * The states of the planner's dynamic program: what has been decided for the layers below. For each number of saved buckets, and whether
 * the last layer is resident, the best one is kept. An index is twice the number of buckets, plus 1 if the layer is resident.
 */
class States {
  readonly savedMs = new Float64Array(2 * BUCKETS + 4).fill(Number.NEGATIVE_INFINITY)
  readonly savedBytes = new Float64Array(2 * BUCKETS + 4)
  readonly peak = new Float64Array(2 * BUCKETS + 4)
  /** Index of the state before. */
  readonly before = new Int16Array(2 * BUCKETS + 4)
  /** What was decided last: the plans of one layer, or the way of a segment. */
  readonly decided: (readonly LayerPlan[] | SegmentPlan)[] = []

  /** Keeps a state if it is the best one with its index. */
  improve(
    { savedMs, savedBytes, peak }: Value,
    bucket: number,
    before: number,
    decided: readonly LayerPlan[] | SegmentPlan,
    isResident = false
  ): void {
    const index = 2 * Math.ceil(savedBytes / bucket) + (isResident ? 1 : 0)
    // What exceeds the memory already cannot be extended.
    if (!(savedMs > this.savedMs[index])) return
    this.savedMs[index] = savedMs
    this.savedBytes[index] = savedBytes
    this.peak[index] = peak
    this.before[index] = before
    this.decided[index] = decided
  }

  /** Index of the state that saves the most time; undefined if there is none. */
  best(): number | undefined {
    let best = 0
    for (let i = 1; i < this.savedMs.length; i++) if (this.savedMs[i] > this.savedMs[best]) best = i
    return this.savedMs[best] === Number.NEGATIVE_INFINITY ? undefined : best
  }
}

/** The plans of all layers, from the lowest one on. */
function plansOf(rows: readonly States[], best: number): LayerPlan[] {
  const parts: (readonly LayerPlan[])[] = []
  for (let [row, index] = [rows.length - 1, best]; row > 0; ) {
    const { decided, before } = rows[row]
    const last = decided[index]
    const plans = 'peak' in last ? plansOfSegment(last) : last
    parts.push(plans)
    index = before[index]
    row -= plans.length
  }
  return parts.reverse().flat()
}

/** One layer of the dynamic program. */
interface Step {
  /** Bytes in use while it is executed, without saved activations, resident weights and stashed outputs. */
  live(isBelowResident: boolean, isOffloaded?: boolean): number
  /** Bytes of other outputs on the device while it is executed, and of those that stay for the backward pass. */
  readonly stashed: number
  readonly staying: number
  /** Bytes of the layer below's outputs in `stashed`, which the backward pass does not need. */
  readonly dropped: number
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

/** Layers of segments are executed without resident weights. */
function segmentLayer(step: Step): SegmentLayer {
  const { staying, activationBytes, activationMs, againMs } = step
  return { live: step.live(false), outputBytes: staying, activationBytes, activationMs, againMs }
}

/**
 * Extends all states by one layer: with and without saved activations, on the device or on the host, resident weights, and outputs on
 * the device, as far as they fit.
 */
function extend(states: States, next: States, limit: number, bucket: number, step: Step): void {
  const { activationBytes, activationMs, offloadMs, outputBytes, outputMs, weightBytes, weightMs } = step
  const places = [
    { bytes: 0, ms: 0, place: 'recomputed' as const },
    ...(activationMs > 0 ? [{ bytes: activationBytes, ms: activationMs, place: 'device' as const }] : []),
    ...(offloadMs > 0 ? [{ bytes: 0, ms: offloadMs, place: 'host' as const }] : [])
  ]
  const choices = places.flatMap(({ bytes, ms, place: activations }) =>
    (outputMs > 0 ? [false, true] : [false]).flatMap(keepsOutputs =>
      (weightMs > 0 ? [false, true] : [false]).map(isResident => ({
        bytes: bytes + (keepsOutputs ? outputBytes : 0),
        later: step.staying + (isResident ? weightBytes : 0),
        ms: ms + (keepsOutputs ? outputMs : 0) + (isResident ? weightMs : 0),
        live: [false, true].map(isBelowResident => step.stashed + step.live(isBelowResident, activations === 'host')),
        isResident,
        plans: [{ activations, outputs: keepsOutputs ? 'device' : 'stash', isResident } as const]
      }))
    )
  )
  for (let i = 0; i < states.savedMs.length; i++) {
    if (states.savedMs[i] === Number.NEGATIVE_INFINITY) continue
    for (const { bytes, later, ms, live, isResident, plans } of choices) {
      const during = states.savedBytes[i] + bytes
      const peak = during + live[i % 2]
      if (peak > limit) continue
      const value = {
        savedMs: states.savedMs[i] + ms,
        savedBytes: during + later,
        peak: Math.max(states.peak[i], peak)
      }
      next.improve(value, bucket, i, plans, isResident)
    }
  }
}

/** Extends all states by a segment of layers, of which only the outputs of the last one stay. */
function extendBySegment(
  states: States,
  next: States,
  limit: number,
  bucket: number,
  {
    front,
    input,
    staying
  }: { readonly front: readonly SegmentPlan[]; readonly input: number; readonly staying: number }
): void {
  for (let i = 0; i < states.savedMs.length; i++) {
    if (states.savedMs[i] === Number.NEGATIVE_INFINITY) continue
    const way = fitting(front, limit - input - states.savedBytes[i])
    if (way === undefined) continue
    const value = {
      savedMs: states.savedMs[i] - way.lostMs,
      savedBytes: states.savedBytes[i] + staying,
      peak: Math.max(states.peak[i], states.savedBytes[i] + input + way.peak)
    }
    next.improve(value, bucket, i, way)
  }
}
