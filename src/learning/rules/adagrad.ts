/**
 * The default rule for linear models: AdaGrad with a diagonal metric (Duchi, Hazan and Singer, JMLR 2011), which adapts the step
 * to each feature's scale and frequency. Four additions improve it on real streams without tuning (docs/results/benchmarks.md): a batch
 * of n gradients counts as n in the accumulator, a weight's step grows with the weight, the decrease of the loss that a batch's
 * step predicts can be limited, and the accumulators can forget while successive gradients agree.
 *
 * The penalty λ/2·‖w‖² as a decay that a weight makes up for when it has a gradient again (lazily, as in Carpenter, "Lazy Sparse
 * Stochastic Gradient Descent for Regularized Multinomial Logistic Regression", 2008). Its gradient λ·w would change every
 * weight in every update.
 *
 * In an update of n gradients, w follows the flow of the penalty under AdaGrad's metric for a time t = λ·√n/√(initial + a):
 * dw/dt = −max(step, growth·|w|)·w. The solution for k updates is that for a time k·t, so it does not matter when a decay is
 * made up.
 *
 * How much successive gradients agree. Near the optimum of a stream that does not change, a weight's gradient is independent of
 * its last one. Where the stream drifts, neighbouring labels are alike or the weights are still far off, both tend to have the
 * same sign.
 *
 * The agreement is Σ |h|·s / Σ |h|, between −1 and 1, over the gradients h of about the last 1,000 updates in units of their
 * root mean square, where s is 1 if a gradient has the sign of the weight's last one, and else −1. It is limited: on a target
 * without noise all gradients agree until the steps are too long, and forgetting must end soon after that. Where single
 * gradients make updates, only every fourth one is measured, which takes less time. The signs of gradients adapt step sizes in
 * Rprop (Riedmiller and Braun, 1993), and their products in hypergradient descent (Baydin et al., 2018).
 */

import { portableExp } from '../../numeric/exp.js'
import { projectOntoBall } from '../engines/working-content.js'
import { describe, radiusOption, resolveOptions } from '../options.js'
import type { Blocks, Layout, UpdateRule } from '../types.js'
import type { RuleDefinition } from './definition.js'

export interface AdagradOptions {
  /** Smallest step of a weight, in units of the weight. @default 0.2 */
  readonly step?: number
  /** Initial value of the accumulator, in squared gradients of one input. @default 0.01 */
  readonly initial?: number
  /** The step is at least this share of the weight's magnitude, so that weights reach any scale soon. 0 is plain AdaGrad. @default 0.5 */
  readonly growth?: number
  /**
   * Limit of the decrease of the mean loss that a batch's step predicts to first order (−Δw·ḡ), in units of the loss. A longer
   * step is shortened. Without this limit, the first step of every weight has full length, which is too long over many
   * features at once. It does not apply to batches of one. @default no limit; `ruleFor` sets 1 nat for classification
   */
  readonly maxLossDecrease?: number
  /**
   * Share of a weight's accumulator that each of its gradients removes, so that steps stay long enough to follow a stream that
   * drifts: about the last 1/forget gradients count. @default none, as for a stream that does not change
   */
  readonly forget?: number
  /**
   * Share of a weight's accumulator that an update removes at most, while successive gradients agree: then steps stay long, and the
   * running average follows the newest predictor. 0: never. @default 0; `ruleFor` sets 0.05 unless `forget` is given
   */
  readonly maxForget?: number
  /**
   * λ of the penalty λ/2·‖w‖² as a decay: a weight makes up for all of it when it has a gradient again, so gradients stay sparse.
   * Predictions with a weight that waits use it as it was. @default none
   */
  readonly l2?: number
  /** Radius of the Euclidean ball that parameters are projected onto. @default none */
  readonly radius?: number
}

const options = {
  step: { default: 0.2, min: 0, isMinExcluded: true, help: 'smallest step of a weight' },
  initial: { default: 0.01, min: 0, isMinExcluded: true, help: 'initial squared gradient of the accumulator' },
  growth: { default: 0.5, min: 0, help: "smallest step as a share of the weight's magnitude" },
  maxLossDecrease: {
    default: undefined,
    min: 0,
    isMinExcluded: true,
    help: 'limit of the predicted decrease of the mean loss (1 for classification)'
  },
  forget: {
    default: undefined,
    min: 0,
    isMinExcluded: true,
    below: 1,
    help: 'share of the accumulator that each gradient removes, for streams that drift'
  },
  maxForget: {
    default: undefined,
    min: 0,
    below: 1,
    help: 'share that an update removes at most, while successive gradients agree (0.05; 0: never)'
  },
  l2: {
    default: undefined,
    min: 0,
    isMinExcluded: true,
    help: 'λ of a penalty λ/2·‖w‖² that a weight makes up for when it has a gradient, for large sparse models'
  },
  ...radiusOption
} as const

/** Divisor of `initial` in the estimate of squared gradients, so that idle weights have fine grids. */
const LATTICE_FLOOR = 64

/** Options with their defaults filled in. */
export type AdagradValues = ReturnType<typeof adagradValues>

/** @throws OptionError */
export function adagradValues(given: AdagradOptions) {
  return resolveOptions('rule adagrad', options, given)
}

/** One weight after a step: w − max(step, growth·|w|)·u. @param unit u = h / √(initial + Σh²) */
export function adagradWeight(weight: number, unit: number, step: number, growth: number): number {
  const relative = growth * Math.abs(weight)
  // Twice the maximum, without a branch that depends on data.
  const twice = relative + step + Math.abs(relative - step)
  return weight - 0.5 * twice * unit
}

/**
 * With h = sum/√n: a ← (1 − forget)ⁿ·a + h² where h ≠ 0, w ← w − max(step, growth·|w|)·h/√(initial + a), shortened to `maxLossDecrease`, then Π_W. State:
 * a, shaped like the parameters. Since h² estimates the sum of n squared gradients' noise, `initial` has the same effect at
 * every batch size. With `l2`, w decays before, and the state also contains the number of the update after which each w is decayed.
 *
 * With `maxForget`, each a has the sign of the weight's last h, and `agreementBlock` is the last block of the state.
 */
export const adagrad: RuleDefinition<AdagradOptions> = {
  summary: 'AdaGrad with a diagonal metric; needs no tuning (Duchi et al., 2011)',
  options,
  isBlockwise: ({ radius, maxLossDecrease, maxForget = 0 }) =>
    radius === undefined && maxLossDecrease === undefined && maxForget === 0,
  create(given): UpdateRule {
    const all = adagradValues(given)
    const { maxForget: most = 0 } = all
    const values = { ...all, maxForget: most > 0 ? most : undefined }
    const { step, growth, initial, maxLossDecrease = Number.POSITIVE_INFINITY, forget = 0, l2 = 0 } = values
    const isAdaptive = most > 0
    return {
      name: 'adagrad',
      description: describe('adagrad', values),
      stateLayout: ({ blocks }) => {
        const named = (suffix: string, isExact = false) =>
          blocks.map(({ name, length }) => ({ name: `${name}.${suffix}`, length, ...(isExact && { isExact }) }))
        return {
          blocks: [
            ...named('squares'),
            ...(l2 === 0 ? [] : named('decayed', true)),
            ...(isAdaptive ? [agreementBlock] : [])
          ]
        }
      },
      isLocal: values.radius === undefined,
      step: (previous, sum, count, updates) => {
        const scale = Math.sqrt(count)
        const state = previous.state.map(block => block.slice())
        const agreement = isAdaptive ? state[state.length - 1] : undefined
        const forgotten = agreement ? forgottenShare(agreement, most) : 0
        const keep = power(1 - forget, count) * (1 - forgotten)
        const from = l2 === 0 ? previous.parameters : previous.parameters.map(block => block.slice())
        if (l2 > 0) for (const [k, weights] of from.entries()) decay(weights, sum[k], state, k, l2 * scale, updates + 1)
        const signs = isAdaptive ? 2 : 0
        let agreeing = 0
        let total = 0
        const parameters: Float32Array[] = []
        for (let k = 0; k < from.length; k++) {
          const next = from[k].slice()
          const gradient = sum[k]
          const squares = state[k]
          for (let i = 0; i < next.length; i++) {
            const h = gradient[i] / scale
            if (h === 0) continue
            const last = squares[i]
            const square = Math.fround(keep * Math.abs(last) + h * h)
            const unit = h / Math.sqrt(initial + square)
            const sign = Math.sign(last)
            agreeing += sign * unit
            total += Math.abs(sign * unit)
            squares[i] = h < 0 ? (1 - signs) * square : square
            next[i] = adagradWeight(next[i], unit, step, growth)
          }
          parameters.push(next)
        }
        if (agreement) {
          countUpdate(agreement, keep)
          if (measures(count, updates)) measure(agreement, agreeing, total)
        }
        if (count > 1) {
          const decrease = predictedDecrease(parameters, from, sum) / count
          if (decrease > maxLossDecrease) shorten(parameters, from, maxLossDecrease / decrease)
        }
        projectOntoBall(parameters, values.radius)
        return { parameters, state }
      },
      squares: (state, block, count, updates) => {
        // An accumulator that forgets contains about 1/(forget·count) batches.
        const remembered = Math.min(updates, forget === 0 ? updates : 1 / (forget * count))
        const batches = (isAdaptive ? state[state.length - 1][BATCHES] : remembered) + 1
        const squares = state[block].slice()
        for (let i = 0; i < squares.length; i++)
          squares[i] = (count * (initial / LATTICE_FLOOR + Math.abs(squares[i]))) / batches
        return { squares, factor: 1, floor: 0 }
      },
      ...(isAdaptive && {
        minWeight: (state: Blocks) => minWeight(state[state.length - 1])
      })
    }

    /** Decays the weights with a gradient, in place. @param rate λ·√n @param update number of updates after this one */
    function decay(
      weights: Float32Array,
      gradient: Float32Array,
      state: Blocks,
      k: number,
      rate: number,
      update: number
    ) {
      const squares = state[k]
      const last = state[Math.floor(state.length / 2) + k]
      for (let i = 0; i < weights.length; i++) {
        if (gradient[i] === 0) continue
        const time = (rate * Math.max(1, update - last[i])) / Math.sqrt(initial + Math.abs(squares[i]))
        weights[i] = decayed(weights[i], time, step, growth)
        last[i] = update
      }
    }
  }
}

/** base^exponent by multiplication alone, so that every machine has the same bits. @param exponent whole, ≥ 0 */
function power(base: number, exponent: number): number {
  let result = 1
  for (let square = base, left = exponent; left > 0; left = Math.floor(left / 2), square *= square) {
    if (left % 2 === 1) result *= square
  }
  return result
}

/** −Δw·(Σg): the first-order decrease of the batch's summed loss. */
function predictedDecrease(parameters: Blocks, from: Blocks, sum: Blocks): number {
  let decrease = 0
  for (let k = 0; k < parameters.length; k++) {
    const [next, before, gradient] = [parameters[k], from[k], sum[k]]
    for (let i = 0; i < next.length; i++) decrease += (before[i] - next[i]) * gradient[i]
  }
  return decrease
}

/** Scales a step to a share of its length. */
function shorten(parameters: Float32Array[], from: Blocks, share: number): void {
  for (const [k, next] of parameters.entries()) {
    const before = from[k]
    for (let i = 0; i < next.length; i++) if (next[i] !== before[i]) next[i] = before[i] + share * (next[i] - before[i])
  }
}

/**
 * The solution after a time t.
 * @param step, growth as in AdaGrad, step > 0
 */
export function decayed(weight: number, t: number, step: number, growth: number): number {
  const size = Math.abs(weight)
  if (growth * size <= step) return weight * portableExp(-step * t)
  // 1/|w| grows by growth in a unit of time, until growth·|w| = step.
  const last = step / growth
  const until = (1 / last - 1 / size) / growth
  return t <= until ? weight / (1 + growth * size * t) : Math.sign(weight) * last * portableExp(-step * (t - until))
}

/**
 * Both sums; the share of the 1,000 updates that they contain, so that the agreement of the first steps counts little; and the number of
 * batches in AdaGrad's accumulators, as far as they have not forgotten them.
 */
export const agreementBlock: Layout['blocks'][number] = { name: 'agreement', length: 4 }
const AGREEING = 0
const TOTAL = 1
const SHARE = 2
const BATCHES = 3

/** The block, in float32 in a predictor. */
type Agreement = Float32Array | Float64Array

/** Share of the sums that remains after an update that is measured. */
const REMEMBERED = 0.999
/** Updates by single gradients of which one is measured. */
const SINGLES = 4
/** Agreement that is within noise on a stream that does not change. */
const NOISE = 0.07
/** Largest agreement that the sums contain. */
const MOST = 0.25
/** Agreement beyond noise at which accumulators forget as fast as they may. */
const FORGETTING = 0.2
/** Agreement beyond noise at which the average follows as fast as it may. */
const FOLLOWING = 0.05
/** Largest weight of the newest predictor in the average. */
const MAX_WEIGHT = 0.9

/** The numbers above, for the kernel: V8 inlines those of the module itself. */
export const AGREEMENT = {
  remembered: REMEMBERED,
  singles: SINGLES,
  noise: NOISE,
  most: MOST,
  forgetting: FORGETTING,
  following: FOLLOWING,
  maxWeight: MAX_WEIGHT
} as const

/** Share of an accumulator that an update removes. @param most if gradients agree */
export function forgottenShare(agreement: Agreement, most: number): number {
  return most * beyondNoise(agreement, FORGETTING)
}

/** Least weight of the newest predictor in the running average. */
export function minWeight(agreement: Agreement): number {
  return MAX_WEIGHT * beyondNoise(agreement, FOLLOWING)
}

/** Whether the agreement of the gradients of an update is measured. @param updates number of updates before */
export function measures(count: number, updates: number): boolean {
  return count > 1 || updates % SINGLES === 0
}

/** Counts an update, in place. @param keep share of the accumulators that it has kept */
export function countUpdate(agreement: Agreement, keep: number): void {
  agreement[BATCHES] = keep * agreement[BATCHES] + 1
}

/**
 * Counts the agreement of an update's gradients, in place.
 * @param agreeing sum of s·h, each divided by the root of its accumulator
 * @param total sum of |s·h| likewise
 */
export function measure(agreement: Agreement, agreeing: number, total: number): void {
  // An accumulator is the sum of as many squares.
  const scale = Math.sqrt(agreement[BATCHES])
  agreement[TOTAL] = REMEMBERED * agreement[TOTAL] + scale * total
  const sum = REMEMBERED * agreement[AGREEING] + scale * agreeing
  agreement[AGREEING] = Math.min(sum, MOST * agreement[TOTAL])
  agreement[SHARE] = REMEMBERED * agreement[SHARE] + (1 - REMEMBERED)
}

/** 0 if the agreement is within noise, 1 if it is so much beyond it. */
function beyondNoise(agreement: Agreement, much: number): number {
  const total = agreement[TOTAL]
  if (!(total > 0)) return 0
  return Math.max(0, Math.min(1, ((agreement[AGREEING] / total) * agreement[SHARE] - NOISE) / much))
}
