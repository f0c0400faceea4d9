/** Adam (Kingma and Ba, ICLR 2015, algorithm 1), for layered models. */

import { SECTION } from '../../numeric/block-code.js'
import { meanOf } from '../../numeric/numbers.js'
import { projectOntoBall, stateBlockIndices } from '../engines/working-content.js'
import { describe, OptionError, type Resolved, radiusOption, resolveOptions } from '../options.js'
import type { BlockLayout, Blocks, Layout, RuleState, UpdateRule } from '../types.js'
import {
  type DividingRule,
  type RuleDefinition,
  type ScalingOptions,
  scalingBy,
  scalingOptions,
  withPureStep
} from './definition.js'
import { addressOf, kernelMemory, readBack } from './kernels.js'

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
      begin: undefined,
      stepInPlace(now, sum, count, updates) {
        rule.stepInPlace(now, sum, count, updates)
        projectOntoBall(now.parameters, radius)
      }
    })
  }
}

interface AdamValues extends Required<Omit<AdamOptions, 'radius' | keyof ScalingOptions>> {
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
function adamRule(values: AdamValues): DividingRule & Required<Pick<DividingRule, 'stepInPlace'>> {
  const { name, description, step, beta1, beta2, rate } = values
  const correct = (corrections: Float32Array) => {
    corrections[0] = beta1 * corrections[0] + (1 - beta1)
    corrections[1] = beta2 * corrections[1] + (1 - beta2)
  }
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
    begin({ state }, count, updates) {
      const now = { ...values, step: step * rate(updates, count) }
      const corrections = state[state.length - 1].slice()
      correct(corrections)
      return {
        states: 2,
        section: (_k, _from, block, [mean, square], sum) =>
          stepBlock(block, mean, square, corrections, sum, count, now),
        end: () => [corrections]
      }
    },
    stepInPlace: ({ parameters, state }, sum, count, updates, divisor = count) => {
      const now = { ...values, step: step * rate(updates, count) }
      const corrections = state[2 * sum.length]
      correct(corrections)
      for (const [k, block] of parameters.entries()) {
        stepBlock(block, state[2 * k], state[2 * k + 1], corrections, sum[k], divisor, now)
      }
    },
    squares(state, block, count) {
      const square = state[2 * block + 1]
      const mean = meanOf(square)
      if (!(mean > 0)) return undefined
      const [, second] = state[state.length - 1]
      return { squares: square, factor: count ** 2 / LATTICE_DIVISOR / second, floor: mean / LATTICE_FLOOR }
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

/**
 * AdamW (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2), as for fine-tuning: biases and
 * norms do not decay, gradients are clipped, and the step size warms up and falls.
 */
export interface AdamWOptions extends Omit<AdamOptions, 'radius'> {
  /** λ of the decay: weights are multiplied by 1 − step·λ in each update, biases and norms are not. @default 0.01 */
  readonly decay?: number
  /** Largest norm of the mean gradient over all blocks; longer ones are scaled. It needs the gradients of all layers. @default none */
  readonly clip?: number
  /** The same for each block, so that layers can be updated before the gradients of others are known. @default none */
  readonly layerClip?: number
  /** Updates over which the step size rises from 0. @default 0 */
  readonly warmup?: number
  /** How the step size falls after the warm-up, to 0 after `total` updates. @default 'constant' */
  readonly schedule?: 'constant' | 'linear' | 'cosine'
  /** Updates after which the step size is 0, for `linear` and `cosine`. */
  readonly total?: number
}

const clipOption = { default: undefined, min: 0, isMinExcluded: true } as const

const adamwOptions = {
  step: { default: 5e-5, min: 0, isMinExcluded: true, help: 'step size' },
  beta1: { default: 0.9, min: 0, below: 1, help: 'decay of the mean gradient' },
  beta2: { default: 0.999, min: 0, below: 1, help: 'decay of the mean squared gradient' },
  epsilon: { default: 1e-8, min: 0, isMinExcluded: true, help: 'added to the root in the denominator' },
  decay: { default: 0.01, min: 0, help: 'λ: weights other than biases and norms lose step·λ of their size' },
  clip: { ...clipOption, help: "largest norm of all layers' gradients together" },
  layerClip: { ...clipOption, help: "largest norm of each layer's gradient" },
  warmup: { default: 0, min: 0, help: 'updates over which the step size rises from 0' },
  schedule: {
    default: 'constant',
    choices: ['constant', 'linear', 'cosine'],
    help: 'how the step size falls after the warm-up'
  },
  total: { default: undefined, min: 1, help: 'updates after which it is 0, for linear and cosine' },
  ...scalingOptions('root')
} as const

/** State: as of Adam. */
export const adamw: RuleDefinition<AdamWOptions> = {
  summary: 'AdamW for fine-tuning (Loshchilov and Hutter, 2019)',
  options: adamwOptions,
  isBlockwise: ({ clip }) => clip === undefined,
  eightBitState: 'elementwise',
  create(given) {
    const values = resolveOptions('rule adamw', adamwOptions, given)
    if (values.schedule !== 'constant' && values.total === undefined) {
      throw new OptionError(`rule adamw: schedule ${values.schedule} needs total, the number of updates`)
    }
    const rate = rateOf(values)
    return adamRule({ ...values, name: 'adamw', description: describe('adamw', values), rate })
  },
  around(rule: DividingRule, given, layout) {
    const values = resolveOptions('rule adamw', adamwOptions, given)
    const { step, decay, clip, layerClip } = values
    const rate = rateOf(values)
    const shrink = (updates: number, count: number) => 1 - step * rate(updates, count) * decay
    return clippedAndDecayed(rule, { shrink, clip, layerClip }, layout)
  }
}

function rateOf(values: Resolved<typeof adamwOptions>) {
  const scale = scalingBy('adamw', values, 'root')
  return (updates: number, count: number) => rateAfter(updates, values) * scale(count)
}

/** Factor of the step size, as by the schedules of Hugging Face's transformers. */
function rateAfter(updates: number, { warmup, schedule, total = warmup }: Resolved<typeof adamwOptions>): number {
  if (updates < warmup) return updates / warmup
  if (schedule === 'constant') return 1
  const passed = total > warmup ? Math.min(1, (updates - warmup) / (total - warmup)) : 1
  return schedule === 'linear' ? 1 - passed : 1 - squaredSine(passed)
}

/** sin²(πx/2) for x from 0 to 1, by a Taylor polynomial, so that all machines have the same bits. */
function squaredSine(x: number): number {
  const angle = (Math.PI / 2) * x
  const square = angle * angle
  let sum = 0
  for (let n = 17; n >= 3; n -= 2) sum = (-square / (n * (n - 1))) * (1 + sum)
  const sine = angle * (1 + sum)
  return sine * sine
}

/** Clipping of gradients by their norm, and weight decay, around a rule that steps blocks. */
interface Clipping {
  /** Factor of the weights in an update with `count` gradients, other than biases and norms. */
  shrink(updates: number, count: number): number
  /** Largest norm of the mean gradient over all blocks. @default no limit */
  readonly clip: number | undefined
  /** Largest norm of the mean gradient of each block. @default no limit */
  readonly layerClip: number | undefined
}

/** @param layout whose `vectors` do not decay @default all weights decay */
function clippedAndDecayed(rule: DividingRule, clipping: Clipping, layout: Layout | undefined): UpdateRule {
  const decaying =
    (begin: NonNullable<UpdateRule['begin']>): typeof begin =>
    (previous, count, updates) => {
      const { states, section, end } = begin(previous, count, updates)
      const factor = clipping.shrink(updates, count)
      return {
        states,
        section(k, from, block, state, sum) {
          decay(block, factor, layout?.blocks[k], from)
          section(k, from, block, state, sum)
        },
        end
      }
    }
  const decayed = (parameters: Blocks, updates: number, count: number): void => {
    const factor = clipping.shrink(updates, count)
    for (const [k, block] of parameters.entries()) decay(block, factor, layout?.blocks[k])
  }
  const { stepInPlace, squares, begin, ...rest } = rule
  const isClipped = clipping.clip !== undefined || clipping.layerClip !== undefined
  // With clipping, the state has squares of clipped gradients, and a step depends on all of them.
  const others: DividingRule = isClipped ? rest : { ...rest, squares, begin: begin && decaying(begin) }
  if (stepInPlace !== undefined) {
    return withPureStep({
      ...others,
      stepInPlace(now, sum, count, updates) {
        decayed(now.parameters, updates, count)
        for (const { part, gradient, factor } of partsOf(rule, now, sum, count, clipping)) {
          stepInPlace(part, gradient, count, updates, count / factor)
        }
      }
    })
  }
  return {
    ...others,
    step(previous, sum, count, updates) {
      const now = { ...previous, parameters: previous.parameters.map(block => block.slice()) }
      decayed(now.parameters, updates, count)
      const state: Float32Array[] = previous.state.map(block => block)
      const parameters: Float32Array[] = []
      for (const { part, gradient, factor, positions } of partsOf(rule, now, sum, count, clipping)) {
        const stepped = rule.step(part, gradient, count, updates, 1, count / factor)
        parameters.push(...(stepped.parameters as Float32Array[]))
        for (const [i, position] of positions.entries()) state[position] = stepped.state[i] as Float32Array
      }
      return { parameters, state }
    }
  }
}

interface Part {
  readonly part: RuleState
  readonly gradient: Blocks
  /** Factor of the gradient, at most 1. */
  readonly factor: number
  /** Positions of the part's state in the whole state. */
  readonly positions: readonly number[]
}

/** All blocks at once, or one by one if each has its own factor. */
function partsOf(rule: UpdateRule, now: RuleState, sum: Blocks, count: number, { clip, layerClip }: Clipping): Part[] {
  const global = factorOf(sum, count, clip)
  if (layerClip === undefined) {
    return [{ part: now, gradient: sum, factor: global, positions: [...now.state.keys()] }]
  }
  const layout = { blocks: sum.map(({ length }, k) => ({ name: String(k), length })) }
  const last = sum.length - 1
  return stateBlockIndices(rule, layout).map((positions, k, all) => {
    // Counters, which all blocks share, advance once: the others step with copies.
    const isShared = (position: number) => k < last && all[last].includes(position)
    const state = positions.map(position => (isShared(position) ? now.state[position].slice() : now.state[position]))
    const part = { parameters: [now.parameters[k]], state }
    return { part, gradient: [sum[k]], factor: Math.min(global, factorOf([sum[k]], count, layerClip)), positions }
  })
}

/** Factor that shortens the mean gradient to the limit. */
function factorOf(sum: Blocks, count: number, limit: number | undefined): number {
  if (limit === undefined) return 1
  let squares = 0
  for (const block of sum) for (let i = 0; i < block.length; i++) squares += block[i] * block[i]
  const norm = Math.sqrt(squares) / count
  return norm > limit ? limit / norm : 1
}

/** @param first number of the first element, of a section */
function decay(block: Float32Array, factor: number, { vectors = [] }: Partial<BlockLayout> = {}, first = 0): void {
  let from = 0
  for (const [start, end] of [...vectors, [first + block.length, 0] as const]) {
    const to = Math.min(block.length, start - first)
    for (let i = from; i < to; i++) block[i] *= factor
    from = Math.max(0, end - first)
  }
}
