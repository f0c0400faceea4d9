/**
 * The types shared by all modules: parameters as blocks, examples as compressed sparse rows, and the interfaces of learners, update
 * rules and averages. They are independent of peers, files and time.
 */

import type { Grid } from '../base/lattice.js'
import type { OutcomeKind, Outcomes } from './metrics/index.js'

export type { Grid } from '../base/lattice.js'

/** A vector over a model's parameters: one Float32Array per block. A linear model has one block, a network one per layer. */
export type Blocks = readonly Float32Array[]

/** Names and lengths of the blocks of a `Blocks` value. Lengths are numbers of float32 elements. */
export interface Layout {
  readonly blocks: readonly { readonly name: string; readonly length: number }[]
}

/**
 * A batch of labelled inputs in compressed sparse row form. Row r has `indices` and `values` from `offsets[r]` up to
 * `offsets[r + 1]`. Arrays may be longer than their used part, which `size` and `offsets[size]` determine. A reader may reuse the
 * arrays for its next batch, so copy a batch to keep it.
 */
export interface Examples {
  /** Number of rows. */
  readonly size: number
  /** Targets: the class number 0 … C−1 for classification, any number for regression, NaN if unlabelled. */
  readonly labels: Float32Array
  /** size + 1 positions into `indices` and `values`. */
  readonly offsets: Int32Array
  /** Zero-based feature numbers. Within a row they need not be sorted or unique. */
  readonly indices: Int32Array
  readonly values: Float32Array
  /** Importance of each row, finite and ≥ 0: its gradient and its loss count that many times. @default 1 for all rows */
  readonly weights?: Float32Array
}

/** Importance of a row. */
export function weightOf({ weights }: Pick<Examples, 'weights'>, row: number): number {
  return weights === undefined ? 1 : weights[row]
}

/** The prediction for one input. `scores`: the probability of each class, or the predicted number for regression. */
export interface Prediction {
  /** The class number for classification, the predicted number for regression. */
  readonly label: number
  readonly scores: readonly number[]
}

/**
 * Sums over rows, each times the row's weight: loss in nats (or squared-error units), and the number of correct classes
 * (classification only).
 */
export interface Score {
  loss: number
  hits: number
  /** Σ(weight − 1), so that rows without weights add nothing: the number of rows plus it is the sum of the weights. @default 0 */
  surplus?: number
  /** Receives the outcome of each row, encoded as `Learner.outcomeKind` says. */
  readonly outcomes?: Outcomes
}

/** Receives the progress of a gradient that is computed block by block. */
export interface GradientProgress {
  /** This block of the sum is final, unless `revoked` follows. */
  ready(block: number): void
  /** The gradient was removed again: blocks that were ready have their previous content. */
  revoked(): void
}

/**
 * A model and its loss. Stateless: parameters are arguments, so that the same learner serves w, the running average and the
 * predictors of neighbours.
 */
export interface Learner {
  readonly layout: Layout
  /** Whether the model predicts classes, so that `Score.hits` has a meaning. */
  readonly classifies: boolean
  /** How `score` encodes outcomes; undefined if it sends none. */
  readonly outcomeKind?: OutcomeKind
  /** New initial parameters, the same on every peer of one configuration. */
  initial(): Float32Array[]
  /** Scores rows [from, to) with `parameters`, adding to `into`. Unlabelled rows are not allowed. */
  score(parameters: Blocks, examples: Examples, from: number, to: number, into: Score): void
  /**
   * Adds the loss gradients (a sum, not a mean) of rows [from, to) at `parameters` into `sum`.
   * @param progress receives the blocks that are complete before others, if there are any
   */
  addGradient(
    parameters: Blocks,
    examples: Examples,
    from: number,
    to: number,
    sum: Blocks,
    progress?: GradientProgress
  ): void
  /** Predicts rows [from, to), one prediction per row, without using their labels. */
  predict(parameters: Blocks, examples: Examples, from: number, to: number): Prediction[]
  /**
   * The model after a number of updates, for models that gain layers while they learn. Use it through `learnerAfter` whenever the
   * number of updates of the parameters is known.
   */
  after?(updates: number): Learner
}

/** Parameters, and the state that the rule keeps for them, whose layout the rule defines. */
export interface RuleState {
  readonly parameters: Blocks
  readonly state: Blocks
}

/**
 * An update rule. It is pure: it allocates its results and never writes to its arguments. It uses only + − × ÷ and square roots
 * (rounded to float32 when stored), so that a replay gives equal bits on every machine.
 */
export interface UpdateRule {
  readonly name: string
  /** Name and options in canonical form, which peers compare. */
  readonly description: string
  /** Layout of the rule's state for parameters of that layout. Scalars are blocks of one element. */
  stateLayout(parameters: Layout): Layout
  /**
   * One update.
   * @param previous parameters and state before
   * @param sum the batch's gradient sum
   * @param count number of gradients in the sum, ≥ 1 (the mean gradient is sum / count)
   * @param updates number of updates before this one
   * @param contributors number of nodes whose gradients are in the sum; only rules with a grid use it
   */
  step(previous: RuleState, sum: Blocks, count: number, updates: number, contributors?: number): RuleState
  /** The same update with the same bits, in place. Not all rules have it. */
  stepInPlace?(now: RuleState, sum: Blocks, count: number, updates: number): void
  /**
   * If the state contains it: an estimate of the mean square of each element of a batch's gradient sum, > 0.
   * @param count number of gradients in the batch
   */
  squares?(state: Blocks, count: number, updates: number): Float32Array[]
  /**
   * The grid of a predictor, if the rule expects integer sums. Without it, sums are float32 numbers.
   * @param updates number of updates of the predictor
   */
  grid?(now: RuleState, updates: number): Grid
}

/** Running average of predictors: w̄ after an update, from w̄ before, the new w and the number of updates before. Pure. */
export interface Averaging {
  readonly name: string
  readonly description: string
  average(previous: Blocks, parameters: Blocks, updates: number): Float32Array[]
}

/** A batch size that follows from the parameters, whose last block holds it. */
export interface BatchRule {
  /** Least b. */
  readonly min: number
  /** b of the predictor with these parameters. */
  of(parameters: Blocks): number
  /** Counts own gradients that are added to a sum while no neighbour is known to hold the predictor. */
  countUnshared(sum: Blocks, count: number): void
}

/** A content digest: 32 lower-case hexadecimal digits (128 bits) over the blocks' lengths and bits. */
export type Digest = (blocks: readonly Blocks[]) => string

/** The learner for parameters that are the result of `updates` updates. */
export function learnerAfter(learner: Learner, updates: number): Learner {
  return learner.after?.(updates) ?? learner
}
