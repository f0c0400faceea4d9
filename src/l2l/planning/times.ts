/** The expected time of each layer under a plan, from measured times and bytes. */
import { passesOf } from '../executor/passes.js'
import { keepsAll, type LayerPlan, type Schedule, type StashLocation } from '../executor/types.js'
import type { DeviceProfile, LayerProfile } from './profile.js'
import type { Plan } from './types.js'

/** The mean time of a layer, including steps that skip it. */
export interface LayerTime {
  readonly ms: number
  /** Part of it in the forward pass. */
  readonly forwardMs: number
  /** Number of updates after which the layer takes part. */
  readonly from: number
}

/** What a step spends its time on. */
export const WORK = ['forward', 'recomputation', 'backward', 'weights', 'gradients', 'stash', 'loss'] as const

/** Milliseconds of a step by what it does; copies of weights, gradients, and outputs and activations in the stash are apart. */
export type StepParts = Readonly<Record<(typeof WORK)[number], number>>

/**
 * Where the expected time of a step goes, without the optimizer (figure 6 of Pudipeddi et al.).
 * @param batch samples per minibatch of a device
 */
export function stepParts(
  { layers, bytesPerMs, head }: DeviceProfile,
  way: Way & Pick<Plan, 'pipeline'>,
  batch: number
): StepParts {
  const { microbatches = 1, group = 1 } = (way.stash === 'host' && way.pipeline) || {}
  /** How often the weights of a loaded layer pass it in a step, and the sums of its gradients in each direction. */
  const operations = Math.ceil(microbatches / group)
  const again = keepsAll(way.schedule, way.stash) ? layers.map(() => 0) : recomputations(way.layers)
  const sums = { forward: 0, recomputation: 0, backward: 0, weights: 0, gradients: 0, stash: 0, loss: head.ms * batch }
  for (const [l, layer] of layers.entries()) {
    const { share, forwardMs, vjpMs, savedVjpMs, weightBytes, gradientBytes } = layer
    const { isSaved, loads, stashed, offloaded } = usesOf(layers, way, l, batch)
    sums.forward += share * batch * forwardMs
    sums.backward += share * batch * savedVjpMs
    sums.recomputation += (isSaved ? 0 : share * batch * (vjpMs - savedVjpMs)) + again[l] * share * batch * forwardMs
    sums.weights += (operations * share * (loads + again[l]) * weightBytes) / bytesPerMs
    sums.gradients += ((2 * operations - 1) * share * gradientBytes) / bytesPerMs
    sums.stash += (share * (stashed + offloaded)) / bytesPerMs
  }
  return sums
}

/** Whether a layer's activations are saved, how often its weights are loaded, and the bytes of its outputs and activations that move. */
function usesOf(layers: readonly LayerProfile[], way: Way, l: number, batch: number) {
  const { activations = 'recomputed', isResident } = way.layers[l]
  const isBaseline = keepsAll(way.schedule, way.stash)
  const isLast = l === layers.length - 1
  return {
    isSaved: isBaseline || isLast || activations !== 'recomputed',
    loads: isBaseline || isLast || isResident || !layers[l].hasBackward ? 1 : 2,
    stashed: isStashed(way, l) ? stashCopies(layers[l], batch) : 0,
    offloaded: activations === 'host' ? offloadCopies(layers[l], batch) : 0
  }
}

/** What the time of a layer depends on. */
interface Way {
  readonly schedule: Schedule
  readonly stash: StashLocation
  readonly layers: readonly LayerPlan[]
}

/** @param batch samples per minibatch */
export function layerTimes({ layers, bytesPerMs }: DeviceProfile, way: Way, batch: number): LayerTime[] {
  const again = keepsAll(way.schedule, way.stash) ? layers.map(() => 0) : recomputations(way.layers)
  return layers.map((layer, l) => {
    const { weightBytes, gradientBytes, forwardMs, vjpMs, savedVjpMs, share, from } = layer
    const { isSaved, loads, stashed, offloaded } = usesOf(layers, way, l, batch)
    const copies = loads * weightBytes + gradientBytes + stashed + offloaded
    const ms = share * (copies / bytesPerMs + batch * (forwardMs + (isSaved ? savedVjpMs : vjpMs)))
    const againAll = again[l] * againMs(layer, batch, bytesPerMs)
    // The forward pass makes two copies of an output in the stash.
    const forward = weightBytes + (stashed > 0 ? 2 * batch * layer.outputBytes : 0) + offloaded / 2
    return { ms: ms + againAll, forwardMs: share * (forward / bytesPerMs + batch * forwardMs), from }
  })
}

/** How often the backward pass executes each layer again to recompute outputs. */
export function recomputations(plans: readonly LayerPlan[]): number[] {
  const counts = plans.map(() => 0)
  if (plans.every(({ outputs }) => outputs !== 'recomputed')) return counts
  for (const { kind, position } of passesOf(plans, 0)) if (kind === 'recompute') counts[position]++
  return counts
}

/** Whether the outputs of a layer move to the stash and back. */
export function isStashed({ schedule, stash, layers }: Way, l: number): boolean {
  const isDevice = keepsAll(schedule, stash) || stash === 'device' || layers[l].outputs === 'device'
  return l < layers.length - 1 && !isDevice
}

/**
 * Bytes between device and stash: an output is stored and read in the forward pass; for the backward pass it is read again, and its
 * gradient stored and read.
 */
export function stashCopies({ outputBytes, hasBackward }: LayerProfile, batch: number): number {
  return (hasBackward ? 5 : 2) * batch * outputBytes
}

/** Bytes between device and host for saved activations. */
export function offloadCopies({ activationBytes }: LayerProfile, batch: number): number {
  return 2 * batch * activationBytes
}

/** Time of a further forward pass of a layer. */
export function againMs({ share, forwardMs, weightBytes }: LayerProfile, batch: number, bytesPerMs: number): number {
  return share * (batch * forwardMs + weightBytes / bytesPerMs)
}
