/** Gradient descent with heavy-ball momentum (Polyak, 1964). */
import { projectOntoBall } from '../blocks.js'
import { describe, radiusOption, resolveOptions } from '../options.js'
import { type RuleDefinition, withPureStep } from './definition.js'
import { type ScalingOptions, scalingBy, scalingOptions } from './scaling.js'

export interface MomentumOptions extends ScalingOptions {
  /** Step size for the mean gradient. @default 0.03 */
  readonly step?: number
  /** Share of the velocity kept at each update. @default 0.9 */
  readonly momentum?: number
  /** Radius of the Euclidean ball that parameters are projected onto. @default none */
  readonly radius?: number
}

const options = {
  step: { default: 0.03, min: 0, isMinExcluded: true, help: 'step size for the mean gradient (0.001 for regression)' },
  momentum: { default: 0.9, min: 0, below: 1, help: 'share of the velocity kept at each update' },
  ...scalingOptions('linear'),
  ...radiusOption
} as const

/** v ← momentum·v + g, w ← Π_W(w − step·v), where g is the mean gradient; with `reference`, times the factor of its batch. State: v, shaped like the parameters. */
export const momentum: RuleDefinition<MomentumOptions> = {
  summary: 'gradient descent with heavy-ball momentum (Polyak, 1964)',
  options,
  isBlockwise: ({ radius }) => radius === undefined,
  eightBitState: 'elementwise',
  create(given) {
    const values = resolveOptions('rule momentum', options, given)
    const scale = scalingBy('momentum', values, 'linear')
    return withPureStep({
      name: 'momentum',
      description: describe('momentum', values),
      stateLayout: layout => ({
        blocks: layout.blocks.map(({ name, length }) => ({ name: `${name}.velocity`, length }))
      }),
      stepInPlace: ({ parameters, state }, sum, count) => {
        const divisor = count / scale(count)
        for (const [k, block] of parameters.entries()) stepBlock(block, state[k], sum[k], divisor, values)
        projectOntoBall(parameters, values.radius)
      }
    })
  }
}

function stepBlock(
  block: Float32Array,
  velocity: Float32Array,
  gradient: Float32Array,
  divisor: number,
  { momentum, step }: { readonly momentum: number; readonly step: number }
): void {
  for (let i = 0; i < block.length; i++) {
    const v = Math.fround(momentum * velocity[i] + gradient[i] / divisor)
    velocity[i] = v
    block[i] -= step * v
  }
}
