/**
 * The passes of a step through its layers, without the layers themselves: what the executor does, and what the planner counts.
 * `position` is the position of a layer in the step's order.
 */
import type { LayerPlan } from './types.js'

/** A pass through the layer at a position. `recompute`: a forward pass for outputs that the backward pass needs again. */
export interface LayerPass {
  readonly kind: 'forward' | 'recompute' | 'backward'
  readonly position: number
  /** Whether a forward pass drops its input, and whether it keeps its output for the backward pass. */
  readonly dropsInput?: boolean
  readonly keepsOutput?: boolean
}

/** The pass in which the outputs of a layer are kept; 0 for the first forward pass. */
export function levelOf({ outputs, keptIn = 1 }: LayerPlan = {}): number {
  return outputs === 'recomputed' ? keptIn : 0
}

/**
 * The passes of a step in their order. Outputs that are not kept are recomputed from the nearest ones below, in as many nested sweeps as
 * they have levels: a sweep keeps the outputs of the lowest level that it meets, and those between them wait for the next one. Any
 * schedule of Revolve (Griewank, Walther) is such a tree of sweeps.
 * @param plans by position
 * @param first position at which the backward pass ends
 */
export function passesOf(plans: readonly (LayerPlan | undefined)[], first: number): LayerPass[] {
  const last = plans.length - 1
  /** The level of the input of the layer at a position. */
  const level = (position: number) => (position > first ? levelOf(plans[position - 1]) : 0)
  const passes: LayerPass[] = []
  const isHeld = plans.map((_, position) => level(position) === 0)
  for (let position = 0; position < last; position++) {
    const dropsInput = position > 0 && (position < first || !isHeld[position])
    passes.push({ kind: 'forward', position, dropsInput, keepsOutput: position >= first && isHeld[position + 1] })
  }
  for (let position = last; position >= first; position--) {
    while (!isHeld[position]) {
      const from = isHeld.lastIndexOf(true, position)
      let [lowest, to] = [Number.POSITIVE_INFINITY, position]
      for (let at = from + 1; at <= position; at++) {
        if (level(at) <= lowest) [lowest, to] = [level(at), at]
      }
      for (let below = from; below < to; below++) {
        isHeld[below + 1] = level(below + 1) === lowest
        const keepsOutput = isHeld[below + 1]
        passes.push({ kind: 'recompute', position: below, dropsInput: !isHeld[below], keepsOutput })
      }
    }
    passes.push({ kind: 'backward', position })
    isHeld[position] = false
  }
  return passes
}
