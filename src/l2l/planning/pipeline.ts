/**
 * The expected step of a pipeline: when each stage executes which operation, how long stages wait for each other, and the bytes on each
 * device. Times of layers are measured; the gradients of inputs and of weights take half of a backward pass each.
 */
import { cutLayers, type Operation, pipelineOrders } from '../executor/pipeline-orders.js'
import { isPipeline, type Pipeline, type Schedule } from '../executor/types.js'
import { bytesAt, type DeviceProfile, isKept } from './profile.js'
import type { DevicePlan, GroupDevice, Plan, PlanRequest } from './types.js'

/** An operation of a stage, in milliseconds from the start of the step. */
export interface TimedOperation extends Operation {
  readonly stage: number
  readonly start: number
  readonly end: number
}

export interface Timeline {
  readonly operations: readonly TimedOperation[]
  readonly ms: number
  /** Share of the time of all stages in which they wait. */
  readonly bubble: number
}

/** Microbatches for each stage beyond which smaller ones save little (Huang et al., "GPipe", 2019). */
const MOST_MICROBATCHES = 4
/** Most chunks on a stage. */
const MOST_CHUNKS = 4

/** Executes each operation as soon as its stage and what it needs are ready. @param msOf time of an operation */
export function timelineOf(
  orders: readonly (readonly Operation[])[],
  msOf: (operation: Operation) => number
): Timeline {
  const key = (kind: Operation['kind'], chunk: number, microbatch: number) => `${kind}/${chunk}/${microbatch}`
  const last = Math.max(0, ...orders.flat().map(({ chunk }) => chunk))
  const ends = new Map<string, number>()
  const free = orders.map(() => 0)
  const next = orders.map(() => 0)
  const operations: TimedOperation[] = []
  const needs = ({ kind, chunk, microbatch }: Operation) => {
    if (kind === 'forward') return chunk === 0 ? [] : [key('forward', chunk - 1, microbatch)]
    if (kind === 'weights') return [key('backward', chunk, microbatch)]
    return [key('forward', chunk, microbatch), ...(chunk === last ? [] : [key('backward', chunk + 1, microbatch)])]
  }
  for (let before = -1; before < operations.length; ) {
    before = operations.length
    for (const [stage, order] of orders.entries()) {
      for (; next[stage] < order.length; next[stage]++) {
        const operation = order[next[stage]]
        const ready = needs(operation).map(need => ends.get(need) ?? Number.POSITIVE_INFINITY)
        const start = Math.max(free[stage], ...ready)
        if (start === Number.POSITIVE_INFINITY) break
        free[stage] = start + msOf(operation)
        ends.set(key(operation.kind, operation.chunk, operation.microbatch), free[stage])
        operations.push({ ...operation, stage, start, end: free[stage] })
      }
    }
  }
  const ms = Math.max(...free)
  const busy = operations.reduce((sum, { start, end }) => sum + end - start, 0)
  return { operations, ms, bubble: ms === 0 ? 0 : 1 - busy / (orders.length * ms) }
}

/**
 * The share of the time in which stages wait that take equal times, with backward passes of twice the time of forward passes: with p stages,
 * m ≥ p microbatches and v chunks (p − 1)/(v·m + p − 1), and (p − 1)/(3·m + p − 1) for `zb-h1` (the sources of `pipelineOrders`).
 */
export function closedFormBubble(kind: Pipeline, stages: number, microbatches: number, chunks: number): number {
  return (stages - 1) / ((kind === 'zb-h1' ? 3 : chunks) * microbatches + stages - 1)
}

/** Why the devices and layers do not allow a schedule. @returns undefined if they do */
export function pipelineFault(schedule: Schedule, layers: number, devices: readonly GroupDevice[]): string | undefined {
  if (!isPipeline(schedule)) return undefined
  const needed = (schedule === 'interleaved' ? 2 : 1) * devices.length
  if (devices.length === 1) return 'divides the layers among devices: add workers=2 or more'
  if (devices.some(({ lineBytesPerMs }) => lineBytesPerMs !== undefined))
    return 'needs devices of this machine: give their speeds alone, or use l2l-p'
  if (layers < needed)
    return `needs ${needed} layers for ${devices.length} workers, and the model has ${layers}: use fewer workers, or l2l-p`
  return undefined
}

/** Milliseconds of each layer per sample, with the head in the last one: what the cut is made by. */
export function layerMs({ layers, head }: DeviceProfile): number[] {
  return layers.map(
    ({ share, forwardMs, savedVjpMs }, l) => share * (forwardMs + savedVjpMs) + (l === layers.length - 1 ? head.ms : 0)
  )
}

/**
 * The plans of the pipeline that the request asks for, of all that fit.
 * @param sizes of microbatches, unless the request has one
 */
export function planPipelines(request: PlanRequest, sizes: readonly number[]): Plan[] {
  const { profile, devices, batch, deviceMemory, fixed } = request
  const { schedule: kind, microbatch } = fixed
  if (!isPipeline(kind)) return []
  const most = kind === 'interleaved' ? Math.min(MOST_CHUNKS, Math.floor(profile.layers.length / devices.length)) : 1
  const chunks = kind === 'interleaved' ? Array.from({ length: most - 1 }, (_, k) => k + 2) : [1]
  const plans = (microbatch ? [Math.min(batch, microbatch)] : sizes)
    .flatMap(size => chunks.map(count => planPipeline(request, kind, size, count)))
    .filter(({ deviceBytes }) => deviceBytes <= deviceMemory)
  const coarse = plans.filter(plan => Math.ceil(batch / plan.microbatch) <= MOST_MICROBATCHES * devices.length)
  return microbatch || coarse.length === 0 ? plans : coarse
}

/** Stages in their order: this thread's device is the last one. */
function stageSpeeds(devices: readonly GroupDevice[]): number[] {
  const [own, ...others] = devices.map(({ speed }) => speed)
  return [...others, own]
}

function planPipeline(request: PlanRequest, kind: Pipeline, microbatch: number, chunks: number): Plan {
  const { profile, batch, devices } = request
  const { layers, bytesPerMs, sumBytesPerMs } = profile
  const stages = devices.length
  const cut = cutLayers(layerMs(profile), stages * chunks, stageSpeeds(devices))
  const microbatches = Math.ceil(batch / microbatch)
  const timeline = pipelineTimeline(request, { schedule: kind, microbatch, cut })
  const memory = pipelineOrders(kind, stages, microbatches, chunks).map(order =>
    stageBytes(request, order, cut, microbatch, microbatches > 1)
  )
  const plans = Array.from({ length: stages }, (_, stage): DevicePlan => {
    const own = layers.filter((_, l) => cut.findLastIndex(first => first <= l) % stages === stage)
    const gradientBytes = own.reduce((sum, layer) => sum + layer.gradientBytes, 0)
    const weightBytes = own.reduce((sum, layer) => sum + layer.weightBytes, 0)
    const mine = timeline.operations.filter(operation => operation.stage === stage)
    // All weights are loaded before the first operation; the last stage stores the gradients of all.
    const copyMs = (weightBytes + gradientBytes) / bytesPerMs
    const busyMs = mine.reduce((sum, { start, end }) => sum + end - start, copyMs)
    return {
      speed: stageSpeeds(devices)[stage],
      rows: batch,
      computeMs: busyMs,
      stepMs: copyMs + (mine.at(-1)?.end ?? 0),
      receivedBytes: 0,
      returnedBytes: stage === stages - 1 ? 0 : gradientBytes
    }
  })
  const returned = plans.reduce((sum, { returnedBytes }) => sum + returnedBytes, 0)
  const stepMs = Math.max(...plans.map(plan => plan.stepMs)) + returned / sumBytesPerMs
  return {
    schedule: kind,
    microbatch,
    stash: 'device',
    layers: layers.map(() => ({})),
    deviceBytes: Math.max(...memory),
    stashBytes: 0,
    stepMs,
    parts: [{ ms: stepMs, from: 0 }],
    pipeline: {
      cut,
      microbatches,
      bubble: timeline.bubble,
      closedForm: closedFormBubble(kind, stages, microbatches, chunks)
    },
    devices: [plans[stages - 1], ...plans.slice(0, -1)]
  }
}

/** When each stage of a plan executes which operation. */
export function pipelineTimeline(
  { profile, inputBytes, batch, devices }: Pick<PlanRequest, 'profile' | 'inputBytes' | 'batch' | 'devices'>,
  {
    schedule,
    microbatch,
    cut
  }: { readonly schedule: Pipeline; readonly microbatch: number; readonly cut: readonly number[] }
): Timeline {
  const { layers, head, bytesPerMs } = profile
  const stages = devices.length
  const speeds = stageSpeeds(devices)
  const last = cut.length - 1
  const sums = cut.map((from, chunk) => {
    const own = layers.slice(from, cut[chunk + 1])
    const copied =
      (chunk > 0 ? boundaryBytes(layers, inputBytes, from) : 0) + (chunk < last ? (own.at(-1)?.outputBytes ?? 0) : 0)
    const copyMs = copied / bytesPerMs
    const forward = own.reduce((sum, { share, forwardMs }) => sum + share * forwardMs, chunk === last ? head.ms : 0)
    const backward = own.reduce((sum, { share, savedVjpMs }) => sum + share * savedVjpMs, 0)
    const part = schedule === 'zb-h1' ? backward / 2 : backward
    return { forward: forward + copyMs, backward: part + copyMs, weights: part }
  })
  const orders = pipelineOrders(schedule, stages, Math.ceil(batch / microbatch), cut.length / stages)
  return timelineOf(orders, ({ kind, chunk, microbatch: i }) => {
    const rows = Math.min(microbatch, batch - i * microbatch)
    return (rows * sums[chunk][kind]) / speeds[chunk % stages]
  })
}

/** Bytes per sample of the input of a layer. */
function boundaryBytes(layers: DeviceProfile['layers'], inputBytes: number, layer: number): number {
  return layer === 0 ? inputBytes : layers[layer - 1].outputBytes
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
