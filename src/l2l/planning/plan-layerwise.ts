/**
 * Plans layer-to-layer execution within the device's memory: a dynamic program over the layers decides which layers
 * save their activations instead of recomputing them, and which weights stay resident instead of being loaded again.
 * If the user has not asked for a stash, it also decides which activations move to the host, and, if the stash is there, which outputs
 * stay on the device. With the stash on the device, it divides the layers into segments: only the output of the last layer of a segment
 * is stashed, and those of the others are recomputed together in the backward pass.
 */
import { shuffleGroups } from '../../nn/layer-order.js'
import type { Schedule, StashLocation } from '../executor/types.js'
import { liveBytes } from './live-bytes.js'
import { isKept, type LayerProfile } from './profile.js'
import { extend, extendBySegment, INITIAL_STATE, type State, type Step } from './states.js'
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
  const offloadMs = task.fixed.stash === undefined ? offloadGains(task) : new Map<number, number>()
  const steps = [...liveBytes(task, schedule, microbatch, stash === 'device' ? stashedBatch : 0)].map(
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
        outputBytes: stashedBatch * outputBytes,
        outputMs: l < last && mayStay(l) ? (share * stashCopies(layers[l], batch)) / bytesPerMs : 0,
        againMs: againMs(layers[l], batch, bytesPerMs)
      }
    }
  )
  // Where layers may be absent or in another order, segments may become longer.
  const isFixed = layers.every(({ share, from, shuffle }) => share === 1 && from === 0 && shuffle === undefined)
  const longest = stash === 'device' && isFixed && Number.isFinite(deviceMemory) ? MOST_LAYERS : 1
  // The best state before each layer for each number of saved buckets: the rows of the dynamic program.
  const rows = Array.from({ length: layers.length + 1 }, () => new Map<number, State>())
  rows[0].set(0, INITIAL_STATE)
  for (let l = 0; l <= last; l++) {
    extend(rows[l], rows[l + 1], l, deviceMemory, bucket, steps[l])
    if (!layers[l].hasBackward) continue
    for (let end = l + 1; end < Math.min(last, l + longest); end++)
      extendBySegment(rows[l], rows[end + 1], [l, end], deviceMemory, bucket, steps)
  }
  if (rows[last + 1].size === 0) return undefined
  const best = [...rows[last + 1].values()].reduce((a, b) => (b.savedMs > a.savedMs ? b : a))
  const { keeps, offloads, unstashed, resident, deviceOutputs, peak } = best
  const isSaved = layers.map((_, l) => l === last || keeps.includes(l) || offloads.includes(l))
  const isResident = layers.map((_, l) => l === last || resident.includes(l))
  const isStashed = layers.map((_, l) => l < last && stash !== 'device' && !deviceOutputs.includes(l))
  const times = layers.map((layer, l) => {
    const { weightBytes, gradientBytes, forwardMs, vjpMs, savedVjpMs, share, from, hasBackward } = layer
    const loads = isResident[l] || !hasBackward ? 1 : 2
    const stashed = isStashed[l] ? stashCopies(layer, batch) : 0
    const offloaded = offloads.includes(l) ? offloadCopies(layer, batch) : 0
    const copies = loads * weightBytes + gradientBytes + stashed + offloaded
    const ms = share * (copies / bytesPerMs + batch * (forwardMs + (isSaved[l] ? savedVjpMs : vjpMs)))
    return { ms: ms + (unstashed.includes(l) ? againMs(layer, batch, bytesPerMs) : 0), from }
  })
  const stashBytes = layers.reduce(
    (sum, { outputBytes, activationBytes }, l) =>
      sum +
      (isStashed[l] && isKept(layers, l) ? stashedBatch * outputBytes : 0) +
      (offloads.includes(l) ? batch * activationBytes : 0),
    0
  )
  return {
    schedule,
    microbatch,
    stash,
    keeps,
    offloads,
    unstashed,
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

/** Bytes between device and host for saved activations. */
function offloadCopies({ activationBytes }: LayerProfile, batch: number): number {
  return 2 * batch * activationBytes
}

/** Time of a further forward pass of a layer. */
function againMs({ share, forwardMs, weightBytes }: LayerProfile, batch: number, bytesPerMs: number): number {
  return share * (batch * forwardMs + weightBytes / bytesPerMs)
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
