/**
 * The expected step of a pipeline: when each stage executes which operation, how long stages wait for each other, and the bytes on each
 * device. Times of layers are measured; the gradients of inputs and of weights take half of a backward pass each.
 */
import { cutLayers, type Operation, pipelineOrders } from '../executor/pipeline-orders.js'
import { isPipeline, type LayerPlan, type Pipeline, type Schedule, type StashLocation } from '../executor/types.js'
import { liveBytes, offloadGains } from './plan-layerwise.js'
import { bytesAt, type DeviceProfile, isKept } from './profile.js'
import { closedFormBubble, type Timeline, timelineOf } from './timeline.js'
import { layerTimes } from './times.js'
import type { DevicePlan, GroupDevice, Plan, PlanRequest } from './types.js'

/** Microbatches for each stage beyond which smaller ones save little (Huang et al., "GPipe", 2019). */
const MOST_MICROBATCHES = 4
/** Most chunks on a stage. */
const MOST_CHUNKS = 4

/** Why the devices and layers do not allow a schedule. @returns undefined if they do */
export function pipelineFault(schedule: Schedule, layers: number, devices: readonly GroupDevice[]): string | undefined {
  if (!isPipeline(schedule)) return undefined
  const needed = (schedule === 'interleaved' ? 2 : 1) * devices.length
  if (devices.length === 1) return 'divides the layers among devices: add workers=2 or more'
  if (layers < needed)
    return `needs ${needed} layers for ${devices.length} workers, and the model has ${layers}: use fewer workers, or l2l-p`
  return undefined
}

/** Rows of an operation for which layers are loaded, and what is done with each layer. */
interface Loaded {
  readonly rows: number
  readonly layers: readonly LayerPlan[]
}

/**
 * Milliseconds of each layer per sample, with the head in the last one: what the cut is made by.
 * @param loaded if layers are loaded for each operation @default they stay on the device
 */
export function layerMs(profile: DeviceProfile, loaded?: Loaded): number[] {
  const { layers, head } = profile
  if (loaded !== undefined) return loadedMs(profile, loaded).map(({ ms }) => ms / loaded.rows)
  return layers.map(
    ({ share, forwardMs, savedVjpMs }, l) => share * (forwardMs + savedVjpMs) + (l === layers.length - 1 ? head.ms : 0)
  )
}

/** The time of each layer, with the head in the last one, if rows pass it that it is loaded for: in the forward pass, and in total. */
function loadedMs(
  profile: DeviceProfile,
  { rows, layers: plans }: Loaded
): { readonly ms: number; readonly forwardMs: number }[] {
  const { layers, head, bytesPerMs } = profile
  const way = { schedule: 'l2l', stash: 'host', layers: plans } as const
  const last = layers.length - 1
  return layerTimes(profile, way, rows).map(({ ms, forwardMs }, l) => ({
    // The sum of the gradients so far comes to the device; the last layer's forward pass is part of its backward pass.
    ms: ms + layers[l].gradientBytes / bytesPerMs + (l === last ? head.ms * rows : 0),
    forwardMs: l === last ? 0 : forwardMs
  }))
}

/**
 * The plans of the pipeline that the request asks for, of all that fit. Layers are loaded for each operation only where no plan keeps them
 * on the device, or where the stash is asked to be on the host.
 * @param sizes of microbatches, unless the request has one
 */
export function planPipelines(request: PlanRequest, sizes: readonly number[]): Plan[] {
  const { profile, devices, batch, deviceMemory, fixed } = request
  const { schedule: kind, microbatch, stash } = fixed
  if (!isPipeline(kind)) return []
  const most = kind === 'interleaved' ? Math.min(MOST_CHUNKS, Math.floor(profile.layers.length / devices.length)) : 1
  const chunks = kind === 'interleaved' ? Array.from({ length: most - 1 }, (_, k) => k + 2) : [1]
  const plansOf = (at: StashLocation) => {
    const plans = (microbatch ? [Math.min(batch, microbatch)] : sizes)
      .flatMap(size => {
        const groups = at === 'device' ? [1] : [...new Set(sizes.map(rows => Math.ceil(rows / size)))]
        return groups.flatMap(group =>
          chunks.map(each => planPipeline(request, { kind, microbatch: size, group, stash: at }, each))
        )
      })
      .filter(({ deviceBytes }) => deviceBytes <= deviceMemory)
    const coarse = plans.filter(
      ({ microbatch: size, pipeline: { group = 1 } = {} }) =>
        Math.ceil(batch / (size * group)) <= MOST_MICROBATCHES * devices.length
    )
    return coarse.length === 0 || (microbatch && at === 'device') ? plans : coarse
  }
  const kept = stash === 'host' ? [] : plansOf('device')
  return kept.length > 0 || stash === 'device' ? kept : plansOf('host')
}

/** How the stages of a pipeline execute their operations. */
interface StagesWay {
  readonly kind: Pipeline
  readonly microbatch: number
  /** Microbatches of an operation. */
  readonly group: number
  /** On the host if layers are loaded for each operation. */
  readonly stash: StashLocation
}

/** The devices in the order of their stages: this thread's device is the last one. */
function byStage(devices: readonly GroupDevice[]): readonly GroupDevice[] {
  const [own, ...others] = devices
  return [...others, own]
}

const sumOf = <T>(all: readonly T[], bytesOf: (one: T) => number) => all.reduce((sum, one) => sum + bytesOf(one), 0)

function planPipeline(request: PlanRequest, way: StagesWay, chunks: number): Plan {
  const { profile, batch, devices } = request
  const { kind, microbatch, group, stash } = way
  const isLoaded = stash === 'host'
  const { layers, bytesPerMs, sumBytesPerMs } = profile
  const stages = devices.length
  const live = isLoaded ? [...liveBytes(request, 'l2l', microbatch, 0)].map(layer => layer.live) : []
  // Activations move to the host where copying takes less time than recomputing.
  const gains = isLoaded && request.fixed.stash === undefined ? offloadGains(request) : new Map<number, number>()
  const offloads = (l: number) => gains.has(l) && live[l](false, true) <= request.deviceMemory
  const layerPlans = layers.map((_, l): LayerPlan => (offloads(l) ? { activations: 'host' } : {}))
  const cut = cutLayers(
    layerMs(profile, isLoaded ? { rows: group * microbatch, layers: layerPlans } : undefined),
    stages * chunks,
    byStage(devices).map(({ speed }) => speed)
  )
  const microbatches = Math.ceil(batch / microbatch)
  const operations = Math.ceil(microbatches / group)
  const timeline = pipelineTimeline(request, {
    schedule: kind,
    microbatch,
    stash,
    layers: layerPlans,
    pipeline: { cut, group }
  })
  const orders = pipelineOrders(kind, stages, operations, chunks)
  const memory = orders.map(order => stageBytes(request, order, cut, microbatch, microbatches > 1))
  const plans = Array.from({ length: stages }, (_, stage): DevicePlan => {
    const device = byStage(devices)[stage]
    const { gradientBytes, weightBytes, boundaryBytes } = stageTraffic(request, cut, stage, stages)
    const isRemote = device.lineBytesPerMs !== undefined
    const isOwn = stage === stages - 1
    const lineMs = gradientBytes / (device.lineBytesPerMs ?? Number.POSITIVE_INFINITY)
    const mine = timeline.operations.filter(operation => operation.stage === stage)
    // Unless they are loaded for each operation, all weights are loaded before the first one.
    const copyMs = isLoaded ? 0 : (weightBytes + gradientBytes) / bytesPerMs
    const busyMs = mine.reduce((sum, { start, end }) => sum + end - start, copyMs)
    return {
      ...device,
      rows: batch,
      computeMs: busyMs,
      stepMs: copyMs + (mine.at(-1)?.end ?? 0) + lineMs,
      receivedBytes: isRemote ? weightBytes + batch * (request.inputBytes + boundaryBytes) : 0,
      returnedBytes: isOwn ? 0 : gradientBytes + (isRemote ? batch * boundaryBytes : 0)
    }
  })
  const returned = sumOf(layers.slice(0, cut.at(-1)), ({ gradientBytes }) => gradientBytes)
  const stepMs = Math.max(...plans.map(plan => plan.stepMs)) + returned / sumBytesPerMs
  return {
    schedule: kind,
    microbatch,
    stash,
    layers: layerPlans,
    deviceBytes: Math.max(...(isLoaded ? live.map((bytes, l) => bytes(false, offloads(l))) : memory)),
    stashBytes: isLoaded
      ? Math.max(
          ...orders.map(order => hostBytes(request, order, cut, { rows: group * microbatch, layers: layerPlans }))
        )
      : 0,
    stepMs,
    parts: [{ ms: stepMs, from: 0 }],
    pipeline: {
      cut,
      microbatches,
      group,
      bubble: timeline.bubble,
      // Loaded layers compute the gradients of their weights at once.
      closedForm: closedFormBubble(isLoaded && kind === 'zb-h1' ? '1f1b' : kind, stages, operations, chunks)
    },
    devices: [plans[stages - 1], ...plans.slice(0, -1)]
  }
}

/** The bytes of the weights and gradients of a stage, and those per sample that come from other stages, and leave to them. */
function stageTraffic(
  { profile: { layers }, inputBytes }: Pick<PlanRequest, 'profile' | 'inputBytes'>,
  cut: readonly number[],
  stage: number,
  stages: number
) {
  const own = layers.filter((_, l) => cut.findLastIndex(first => first <= l) % stages === stage)
  const chunks = cut.flatMap((_, chunk) => (chunk % stages === stage ? [chunk] : []))
  const below = sumOf(chunks, chunk => (chunk > 0 ? boundaryBytes(layers, inputBytes, cut[chunk]) : 0))
  const above = sumOf(chunks, chunk => (chunk + 1 < cut.length ? boundaryBytes(layers, inputBytes, cut[chunk + 1]) : 0))
  return {
    weightBytes: sumOf(own, ({ weightBytes }) => weightBytes),
    gradientBytes: sumOf(own, ({ gradientBytes }) => gradientBytes),
    // Outputs move up, and their gradients down.
    boundaryBytes: below + above
  }
}

/** When each stage of a plan executes which operation. */
export function pipelineTimeline(
  { profile, inputBytes, batch, devices }: Pick<PlanRequest, 'profile' | 'inputBytes' | 'batch' | 'devices'>,
  {
    schedule,
    microbatch,
    stash,
    layers: plans,
    pipeline: { cut, group }
  }: {
    readonly schedule: Pipeline
    readonly microbatch: number
    readonly stash: StashLocation
    readonly layers: readonly LayerPlan[]
    readonly pipeline: Pick<NonNullable<Plan['pipeline']>, 'cut' | 'group'>
  }
): Timeline {
  const { layers, head, bytesPerMs } = profile
  const stages = devices.length
  const placed = byStage(devices)
  const last = cut.length - 1
  /** Milliseconds of an operation by its rows. */
  const msOf = (chunk: number, kind: Operation['kind'], rows: number) => {
    const from = cut[chunk]
    const own = layers.slice(from, cut[chunk + 1])
    const copied =
      (chunk > 0 ? boundaryBytes(layers, inputBytes, from) : 0) + (chunk < last ? (own.at(-1)?.outputBytes ?? 0) : 0)
    const copyMs = (rows * copied) / bytesPerMs
    if (stash === 'host') {
      const times = loadedMs(profile, { rows, layers: plans }).slice(from, cut[chunk + 1])
      const forwardMs = times.reduce((sum, each) => sum + each.forwardMs, 0)
      const ms = times.reduce((sum, each) => sum + each.ms, 0)
      return { forward: forwardMs + copyMs, backward: ms - forwardMs + copyMs, weights: 0 }[kind]
    }
    const forward = own.reduce((sum, { share, forwardMs }) => sum + share * forwardMs, chunk === last ? head.ms : 0)
    const backward = own.reduce((sum, { share, savedVjpMs }) => sum + share * savedVjpMs, 0)
    const part = schedule === 'zb-h1' ? backward / 2 : backward
    return { forward: rows * forward + copyMs, backward: rows * part + copyMs, weights: rows * part }[kind]
  }
  const orders = pipelineOrders(schedule, stages, Math.ceil(Math.ceil(batch / microbatch) / group), cut.length / stages)
  const rowsAt = (i: number) => Math.min(group * microbatch, batch - i * group * microbatch)
  const lineMs = (stage: number, bytes: number) => bytes / (placed[stage].lineBytesPerMs ?? Number.POSITIVE_INFINITY)
  const readyMs = placed.map((_, stage) =>
    lineMs(stage, batch * inputBytes + stageTraffic({ profile, inputBytes }, cut, stage, stages).weightBytes)
  )
  const transferMs = ({ kind, chunk, microbatch: i }: Operation, to: number) => {
    const boundary = kind === 'forward' ? chunk + 1 : chunk
    if (boundary === 0 || boundary > last) return 0
    const bytes = rowsAt(i) * boundaryBytes(layers, inputBytes, cut[boundary])
    return lineMs(chunk % stages, bytes) + lineMs(to, bytes)
  }
  const ms = ({ kind, chunk, microbatch: i }: Operation) => msOf(chunk, kind, rowsAt(i)) / placed[chunk % stages].speed
  return timelineOf(orders, ms, { readyMs, transferMs })
}

/** Bytes per sample of the input of a layer. */
function boundaryBytes(layers: DeviceProfile['layers'], inputBytes: number, layer: number): number {
  return layer === 0 ? inputBytes : layers[layer - 1].outputBytes
}

/**
 * Bytes of a stage on the host if layers are loaded: sums of gradients, inputs and activations of layers for the backward pass, and one
 * layer's outputs.
 */
function hostBytes(
  { profile: { layers } }: PlanRequest,
  order: readonly Operation[],
  cut: readonly number[],
  { rows, layers: plans }: Loaded
): number {
  const own = [...new Set(order.map(({ chunk }) => chunk))]
  const inputs = new Map(
    own.map(chunk => {
      const stored = layers.slice(cut[chunk], cut[chunk + 1]).map((_, i) => {
        const l = cut[chunk] + i
        const saved = plans[l].activations === 'host' ? layers[l].activationBytes : 0
        return saved + (l > 0 && layers[l].hasBackward ? layers[l - 1].outputBytes : 0)
      })
      return [chunk, rows * stored.reduce((sum, bytes) => sum + bytes, 0)]
    })
  )
  let [stored, peak] = [0, 0]
  for (const { kind, chunk } of order) {
    if (kind !== 'weights') stored += (kind === 'forward' ? 1 : -1) * (inputs.get(chunk) ?? 0)
    peak = Math.max(peak, stored)
  }
  const all = own.flatMap(chunk => layers.slice(cut[chunk], cut[chunk + 1]))
  return (
    peak +
    all.reduce((sum, { gradientBytes }) => sum + gradientBytes, 0) +
    rows * Math.max(...all.map(({ outputBytes }) => outputBytes))
  )
}

/** Upper bound of the bytes on the device of a stage. */
function stageBytes(
  request: PlanRequest,
  order: readonly Operation[],
  cut: readonly number[],
  microbatch: number,
  isSplit: boolean
): number {
  const { layers } = request.profile
  const sections = cut.map((from, chunk) =>
    sectionBytes(request, from, cut[chunk + 1] ?? layers.length, microbatch, isSplit)
  )
  const own = [...new Set(order.map(({ chunk }) => chunk))].map(chunk => sections[chunk])
  const isDeferred = order.some(({ kind }) => kind === 'weights')
  let [stored, peak] = [0, 0]
  for (const { kind, chunk } of order) {
    const section = sections[chunk]
    if (kind === 'forward') {
      peak = Math.max(peak, stored + section.forward)
      stored += section.stored
    } else if (kind === 'backward') {
      stored -= section.stored
      peak = Math.max(peak, stored + section.backward + (isDeferred ? section.kept : 0))
      if (isDeferred) stored += section.kept
    } else stored -= section.kept
  }
  const sum = (field: 'weights' | 'gradients') => own.reduce((bytes, section) => bytes + section[field], 0)
  const merge = Math.max(...own.map(section => section.merge))
  return sum('weights') + Math.max(merge, (isSplit ? sum('gradients') : 0) + peak)
}

/**
 * Bytes of consecutive layers that keep their weights and activations on the device, with one microbatch: weights, gradient sums, what the
 * forward pass stores, what a backward pass keeps for later gradients of weights, and the peaks of both passes. The peaks are without
 * weights and without the sums of earlier microbatches.
 * @param end the layer after the last one
 * @param isSplit whether there are several microbatches
 */
export function sectionBytes(
  { profile, inputBytes }: PlanRequest,
  from: number,
  end: number,
  microbatch: number,
  isSplit: boolean
) {
  const { layers, head } = profile
  const own = layers.slice(from, end)
  const gradients = own.reduce((sum, { gradientBytes }) => sum + gradientBytes, 0)
  // Gradient sums: of all layers from the second microbatch on, of the layers above in the first.
  let sums = gradients
  let stored = microbatch * boundaryBytes(layers, inputBytes, from)
  let [forward, backward] = [0, 0]
  for (const [i, layer] of own.entries()) {
    const l = from + i
    const { gradientBytes, outputBytes, activationBytes, savingWork, savedWork } = layer
    sums -= gradientBytes
    const input = l > 0 && !isKept(layers, l - 1) ? microbatch * layers[l - 1].outputBytes : 0
    const vjp = microbatch * (activationBytes + outputBytes) + bytesAt(savedWork, microbatch)
    const work = isSplit ? Math.max(vjp, microbatch * activationBytes + 2 * gradientBytes) : vjp
    forward = Math.max(forward, stored + input + bytesAt(savingWork, microbatch))
    if (layer.hasBackward) backward = Math.max(backward, stored + (isSplit ? 0 : sums) + work)
    if (layer.hasBackward) stored += microbatch * (activationBytes + outputBytes)
    else if (isKept(layers, l)) stored += microbatch * outputBytes
  }
  // The output of another section's input leaves the device.
  if (end < layers.length && isKept(layers, end - 1)) stored -= microbatch * layers[end - 1].outputBytes
  if (end === layers.length) forward = Math.max(forward, stored + bytesAt(head.work, microbatch))
  return {
    weights: own.reduce((sum, { weightBytes }) => sum + weightBytes, 0),
    gradients,
    stored,
    kept: microbatch * own.reduce((sum, { keptBytes }) => sum + keptBytes, 0),
    forward,
    backward,
    merge: Math.max(...own.map(({ loadBytes, weightBytes }) => loadBytes - weightBytes))
  }
}
