/** Gradient descent with heavy-ball momentum (Polyak, 1964), for models whose loss surface is uneven. */
import { projectOntoBall } from '../blocks.js'
import { describe, resolveNumbers } from '../options.js'
import type { UpdateRule } from '../types.js'
import { withPureStep } from './in-place.js'

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
  return withPureStep({
    name: 'momentum',
    description: describe('momentum', values),
    stateLayout: layout => ({
      blocks: layout.blocks.map(({ name, length }) => ({ name: `${name}.velocity`, length }))
    }),
    stepInPlace: ({ parameters, state }, sum, count) => {
      for (const [k, block] of parameters.entries()) push(block, state[k], sum[k], count, values)
      projectOntoBall(parameters, values.radius)
    }
  })
}

function push(
  block: Float32Array,
  velocity: Float32Array,
  gradient: Float32Array,
  count: number,
  { momentum, step }: { readonly momentum: number; readonly step: number }
): void {
  for (let i = 0; i < block.length; i++) {
    const v = Math.fround(momentum * velocity[i] + gradient[i] / count)
    velocity[i] = v
    block[i] -= step * v
  }
}
