/** Adam (Kingma and Ba, ICLR 2015, algorithm 1), for layered models. */
import { meanOf } from '../../base/floats.js'
import { newBlock } from '../../base/memory.js'
import { projectOntoBall } from '../blocks.js'
import { describe, radiusOption, resolveOptions } from '../options.js'
import { type DividingRule, type RuleDefinition, withPureStep } from './definition.js'
import { addressOf, kernelMemory, readBack, SECTION } from './kernels/memory.js'
import { type ScalingOptions, scalingBy, scalingOptions } from './scaling.js'

export interface AdamOptions extends ScalingOptions {
  /** Step size, an approximate bound of a weight's change in one update. @default 0.001 */
  readonly step?: number
  /** Decay of the mean gradient. @default 0.9 */
  readonly beta1?: number
  /** Decay of the mean squared gradient. @default 0.999 */
  readonly beta2?: number
  /** Added to the root in the denominator. @default 1e-8 */
  readonly epsilon?: number
  /** Radius of the Euclidean ball that parameters are projected onto. @default none */
  readonly radius?: number
}

const options = {
  step: { default: 0.001, min: 0, isMinExcluded: true, help: 'step size' },
  beta1: { default: 0.9, min: 0, below: 1, help: 'decay of the mean gradient' },
  beta2: { default: 0.999, min: 0, below: 1, help: 'decay of the mean squared gradient' },
  epsilon: { default: 1e-8, min: 0, isMinExcluded: true, help: 'added to the root in the denominator' },
  ...scalingOptions('root'),
  ...radiusOption
} as const

/**
 * State: for each block its mean gradient m and then its mean square v, and last `corrections` = (1 − β₁^t, 1 − β₂^t),
 * computed by recurrence so that no power function is needed.
 */
export const adam: RuleDefinition<AdamOptions> = {
  summary: 'Adam, the default for networks (Kingma and Ba, 2015)',
  options,
  isBlockwise: ({ radius }) => radius === undefined,
  eightBitState: 'elementwise',
  create(given) {
    const values = resolveOptions('rule adam', options, given)
    const scale = scalingBy('adam', values, 'root')
    const rate = (_: number, count: number) => scale(count)
    const rule = adamRule({ ...values, name: 'adam', description: describe('adam', values), rate })
    const { radius } = values
    if (radius === undefined) return rule
    return withPureStep({
      ...rule,
      stepInPlace(now, sum, count, updates) {
        rule.stepInPlace(now, sum, count, updates)
        projectOntoBall(now.parameters, radius)
      }
    })
  }
}

export interface AdamValues extends Required<Omit<AdamOptions, 'radius' | keyof ScalingOptions>> {
  readonly name: string
  readonly description: string
  /** Factor of the step size after a number of updates, for a batch of `count` gradients. */
  rate(updates: number, count: number): number
}

/** Divisor of the estimate of squared gradients: steps of integer sums are half as long, because Adam also follows small gradients. */
const LATTICE_DIVISOR = 4
/** Divisor of a block's mean square, which is added to that of each weight, so that idle weights have no finer steps than they need. */
const LATTICE_FLOOR = 100

/** Adam without projection. */
export function adamRule(values: AdamValues): DividingRule & Required<Pick<DividingRule, 'stepInPlace'>> {
  const { name, description, step, beta1, beta2, rate } = values
  return withPureStep({
    name,
    description,
    stateLayout: layout => ({
      blocks: [
        ...layout.blocks.flatMap(({ name, length }) => [
          { name: `${name}.mean`, length },
          { name: `${name}.square`, length }
        ]),
        { name: 'corrections', length: 2 }
      ]
    }),
    stepInPlace: ({ parameters, state }, sum, count, updates, divisor = count) => {
      const now = { ...values, step: step * rate(updates, count) }
      const corrections = state[2 * sum.length]
      corrections[0] = beta1 * corrections[0] + (1 - beta1)
      corrections[1] = beta2 * corrections[1] + (1 - beta2)
      for (const [k, block] of parameters.entries()) {
        stepBlock(block, state[2 * k], state[2 * k + 1], corrections, sum[k], divisor, now)
      }
    },
    squares(state, block, count) {
      const square = state[2 * block + 1]
      const mean = meanOf(square)
      if (!(mean > 0)) return undefined
      const [, second] = state[state.length - 1]
      const factor = count ** 2 / LATTICE_DIVISOR / second
      const floor = mean / LATTICE_FLOOR
      const squares = newBlock(square.length)
      for (let i = 0; i < squares.length; i++) squares[i] = factor * (square[i] + floor)
      return squares
    }
  })
}

function stepBlock(
  block: Float32Array,
  mean: Float32Array,
  square: Float32Array,
  [first, second]: Float32Array,
  gradient: Float32Array,
  divisor: number,
  { step, beta1, beta2, epsilon }: Pick<AdamValues, 'step' | 'beta1' | 'beta2' | 'epsilon'>
): void {
  const { adamStep } = kernelMemory().kernels
  const numbers = [beta1, 1 - beta1, beta2, 1 - beta2, 1 / divisor, step / first, 1 / second, epsilon]
  for (let from = 0; from < block.length; from += SECTION) {
    const sections = [block, gradient, mean, square].map(values => values.subarray(from, from + SECTION))
    adamStep(...sections.map(addressOf), sections[0].length, ...numbers)
    for (const slot of [0, 2, 3]) readBack(sections[slot], slot)
  }
}
