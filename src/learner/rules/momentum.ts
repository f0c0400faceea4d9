/** Gradient descent with heavy-ball momentum (Polyak, 1964), for models whose loss surface is uneven. */
import { projectOntoBall } from '../blocks.js'
import { describe, resolveNumbers } from '../options.js'
import type { UpdateRule } from '../types.js'

export interface MomentumOptions {
  /** Step size for the mean gradient. Default 0.03. */
  readonly step?: number
  /** Share of the velocity kept at each update. Default 0.9. */
  readonly momentum?: number
  /** Radius of the Euclidean ball that parameters are projected onto. Default: none. */
  readonly radius?: number
}

const options = {
  step: { preset: 0.03, least: 0, above: true },
  momentum: { preset: 0.9, least: 0, below: 1 },
  radius: { preset: undefined, least: 0, above: true }
} as const

/** v ← momentum·v + g, w ← Π_W(w − step·v) with g the mean gradient. State: v, shaped like the parameters. */
export function momentum(given: MomentumOptions): UpdateRule {
  const values = resolveNumbers('rule momentum', options, given)
  return {
    name: 'momentum',
    description: describe('momentum', values),
    stateLayout: layout => ({
      blocks: layout.blocks.map(({ name, length }) => ({ name: `${name}.velocity`, length }))
    }),
    step: (previous, sum, count) => {
      const state = previous.state.map((block, k) => pushed(block, sum[k], values.momentum, count))
      const parameters = previous.parameters.map((block, k) => moved(block, state[k], values.step))
      projectOntoBall(parameters, values.radius)
      return { parameters, state }
    }
  }
}

// Plain loops outside of closures, as `map` calls a function for each number: ten times as long.

/** share·v + g/count */
function pushed(velocity: Float32Array, gradient: Float32Array, share: number, count: number): Float32Array {
  const next = new Float32Array(velocity.length)
  for (let i = 0; i < next.length; i++) next[i] = share * velocity[i] + gradient[i] / count
  return next
}

/** w − step·v */
function moved(block: Float32Array, velocity: Float32Array, step: number): Float32Array {
  const next = new Float32Array(block.length)
  for (let i = 0; i < next.length; i++) next[i] = block[i] - step * velocity[i]
  return next
}
