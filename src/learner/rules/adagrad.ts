/**
 * The default rule: AdaGrad with a diagonal metric (Duchi, Hazan and Singer, JMLR 2011), whose steps fit themselves to
 * each feature's scale and frequency. Three things are ours, all measured to help out of the box on real streams: a batch
 * of n gradients counts as n in the accumulator, a weight's step grows with the weight, and a batch's step may be kept
 * from promising more than the loss has to give.
 */
import { projectOntoBall } from '../blocks.js'
import { describe, resolveNumbers } from '../options.js'
import type { Blocks, UpdateRule } from '../types.js'

export interface AdagradOptions {
  /** Smallest step of a weight, in units of the weight. Default 0.2. */
  readonly step?: number
  /** Start of the accumulator, in squared gradients of one input. Default 0.01. */
  readonly initial?: number
  /** The step is at least this share of the weight's size: lets weights reach any scale soon. Default 0.5; 0 is plain AdaGrad. */
  readonly growth?: number
  /**
   * Most by which a batch's step may lower the mean loss to first order (−Δw·ḡ), in units of the loss; a longer one is cut.
   * Every weight's first step has full length, which over many features at once is far too long. Without effect on
   * batches of one, whose gradient promises nothing about the next input. Default: no limit; `ruleFor` makes it 1 nat for
   * classification.
   */
  readonly maxLossDecrease?: number
  /** Radius of the Euclidean ball that parameters are projected onto. Default: none. */
  readonly radius?: number
}

export interface AdagradValues {
  readonly step: number
  readonly initial: number
  readonly growth: number
  readonly maxLossDecrease: number | undefined
  readonly radius: number | undefined
}

const options = {
  step: { preset: 0.2, least: 0, above: true },
  initial: { preset: 0.01, least: 0, above: true },
  growth: { preset: 0.5, least: 0 },
  maxLossDecrease: { preset: undefined, least: 0, above: true },
  radius: { preset: undefined, least: 0, above: true }
} as const

/** The options with their defaults filled in. @throws OptionError */
export function adagradValues(given: AdagradOptions): AdagradValues {
  return resolveNumbers('rule adagrad', options, given)
}

/**
 * One weight after a gradient h, given its accumulator with h² already in it:
 * w − max(step, growth·|w|)·h / √(initial + Σh²).
 */
export function adagradWeight(
  weight: number,
  h: number,
  squares: number,
  step: number,
  growth: number,
  initial: number
): number {
  const relative = growth * Math.abs(weight)
  // Twice the maximum, without a branch on data, which no processor could foresee.
  const twice = relative + step + Math.abs(relative - step)
  return weight - (0.5 * twice * h) / Math.sqrt(initial + squares)
}

/**
 * With h = sum/√n: a ← a + h², w ← w − max(step, growth·|w|)·h/√(initial + a), cut to `maxLossDecrease`, then Π_W. State: a, shaped like the
 * parameters. Since h² is about the sum of n squared gradients' noise, `initial` means the same for every batch size.
 */
export function adagrad(given: AdagradOptions): UpdateRule {
  const values = adagradValues(given)
  const { step, growth, initial, maxLossDecrease = Number.POSITIVE_INFINITY } = values
  const shorten = (parameters: Float32Array[], from: Blocks, decrease: number) => {
    if (decrease > maxLossDecrease) shrinkStep(parameters, from, maxLossDecrease / decrease)
  }
  return {
    name: 'adagrad',
    description: describe('adagrad', { ...values }),
    stateLayout: layout => ({
      blocks: layout.blocks.map(block => ({ name: `${block.name}.squares`, length: block.length }))
    }),
    step: (previous, sum, count) => {
      const scale = Math.sqrt(count)
      const state = previous.state.map(block => block.slice())
      const parameters = previous.parameters.map((block, k) => {
        const next = block.slice()
        const gradient = sum[k]
        const squares = state[k]
        for (let i = 0; i < next.length; i++) {
          const h = gradient[i] / scale
          if (h === 0) continue
          squares[i] += h * h
          next[i] = adagradWeight(next[i], h, squares[i], step, growth, initial)
        }
        return next
      })
      if (count > 1) shorten(parameters, previous.parameters, promised(parameters, previous.parameters, sum) / count)
      projectOntoBall(parameters, values.radius)
      return { parameters, state }
    }
  }
}

/** −Δw·(Σg): by how much the step lowers the batch's summed loss to first order. */
function promised(parameters: Blocks, from: Blocks, sum: Blocks): number {
  let decrease = 0
  for (let k = 0; k < parameters.length; k++) {
    const [next, before, gradient] = [parameters[k], from[k], sum[k]]
    for (let i = 0; i < next.length; i++) decrease += (before[i] - next[i]) * gradient[i]
  }
  return decrease
}

/** Takes only that share of the step. */
function shrinkStep(parameters: Float32Array[], from: Blocks, share: number): void {
  for (const [k, next] of parameters.entries()) {
    const before = from[k]
    for (let i = 0; i < next.length; i++) next[i] = before[i] + share * (next[i] - before[i])
  }
}
