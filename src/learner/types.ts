/**
 * The words that every room shares: parameters as blocks, examples as compressed sparse rows, and what a learner and an
 * update rule owe to whoever drives them. Nothing here knows of peers, files or time.
 */

/** One vector over a model's parameters: a Float32Array a block (a linear model has one block, a network one a layer). */
export type Blocks = readonly Float32Array[]

/** Names and lengths of the blocks of a `Blocks` value. Lengths count float32 elements. */
export interface Layout {
  readonly blocks: readonly { readonly name: string; readonly length: number }[]
}

/**
 * A batch of labelled inputs in compressed sparse row form. Row r owns `indices` and `values` from `offsets[r]` up to
 * `offsets[r + 1]`. Arrays may be longer than what is used: `size` and `offsets[size]` tell. A reader may reuse the
 * arrays for its next batch, so whoever keeps a batch copies it.
 */
export interface Examples {
  /** Number of rows. */
  readonly size: number
  /** Targets: the class number 0 … C−1 for classification (so 0 and 1 for two classes), any number for regression. NaN: unlabelled. */
  readonly labels: Float32Array
  /** size + 1 positions into `indices` and `values`. */
  readonly offsets: Int32Array
  /** Zero-based feature numbers, within a row neither sorted nor unique by promise. */
  readonly indices: Int32Array
  readonly values: Float32Array
}

/** What a model makes of one input. `scores`: probabilities (one a class), or the one predicted number for regression. */
export interface Prediction {
  /** The class number for classification, the number itself for regression. */
  readonly label: number
  readonly scores: readonly number[]
}

/** Sums over rows: loss in nats (or squared-error units), and how many labels were hit (classification only). */
export interface Score {
  loss: number
  hits: number
}

/** Hears how far a gradient has come whose blocks come one after the other. */
export interface GradientProgress {
  /** The sum's block of that number is final, unless `revoked` follows. */
  ready(block: number): void
  /** What was added was taken back: blocks that were ready are as they were before. */
  revoked(): void
}

/**
 * A model and its loss. Stateless: parameters are arguments, so that the same learner serves w, the running average and
 * anything a neighbour sent.
 */
export interface Learner {
  readonly layout: Layout
  /** Whether `Score.hits` has a meaning. */
  readonly classifies: boolean
  /** Fresh initial parameters: the same on every peer of one configuration. */
  initial(): Float32Array[]
  /** Scores rows [from, to) with `parameters`, adding to `into`. Unlabelled rows are not allowed. */
  score(parameters: Blocks, examples: Examples, from: number, to: number, into: Score): void
  /**
   * Adds the loss gradients (a sum, not a mean) of rows [from, to) at `parameters` into `sum`.
   * @param progress hears of blocks that are done before others, where there are such
   */
  addGradient(
    parameters: Blocks,
    examples: Examples,
    from: number,
    to: number,
    sum: Blocks,
    progress?: GradientProgress
  ): void
  /** What it makes of rows [from, to), one prediction a row; labels are not looked at. */
  predict(parameters: Blocks, examples: Examples, from: number, to: number): Prediction[]
  /**
   * The model as it is after so many updates, where that makes a difference: layers may come in while it learns. Whoever knows
   * how many made the parameters asks here first, by way of `learnerAfter`.
   */
  after?(updates: number): Learner
}

/** Parameters together with the state that the rule keeps for them (its layout is the rule's own affair). */
export interface RuleState {
  readonly parameters: Blocks
  readonly state: Blocks
}

/**
 * An update rule, pure: it allocates what it returns and never writes to its arguments. It uses only + − × ÷ and square
 * roots (each rounded to float32 when stored), so that a replay gives equal bits on every machine.
 */
export interface UpdateRule {
  readonly name: string
  /** Options as they take part in the agreement between peers, in canonical form. */
  readonly description: string
  /** Layout of the rule's state for parameters of that layout. May hold blocks of one element for scalars. */
  stateLayout(parameters: Layout): Layout
  /**
   * One update.
   * @param previous parameters and state before
   * @param sum the batch's gradient sum
   * @param count how many gradients are in the sum (the averaged gradient is sum / count), ≥ 1
   * @param updates the number of updates made before this one
   */
  step(previous: RuleState, sum: Blocks, count: number, updates: number): RuleState
  /** The same update with the same bits, written over what was before: for memory that nobody else reads. Not all rules have it. */
  stepInPlace?(now: RuleState, sum: Blocks, count: number, updates: number): void
}

/** Running average of predictors: w̄ after an update, from w̄ before, the new w and the number of updates before. Pure. */
export interface Averaging {
  readonly name: string
  readonly description: string
  average(previous: Blocks, parameters: Blocks, updates: number): Float32Array[]
}

/** A content digest: 32 lower-case hexadecimal digits (128 bits) over the blocks' lengths and bits. */
export type Digest = (blocks: readonly Blocks[]) => string
