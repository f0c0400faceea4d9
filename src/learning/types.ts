/**
 * The types shared by all modules: parameters as blocks, examples as compressed sparse rows, and the interfaces of learners, update
 * rules and averages. They are independent of peers, files and time.
 */
import type { Squares } from '../numeric/block-kernels.js'
import type { Grid } from '../numeric/lattice.js'
import type { MarkElements } from '../numeric/sums.js'
import type { Support } from '../numeric/support.js'
import type { OutcomeKind, Outcomes } from './metrics/index.js'

export type { Grid } from '../numeric/lattice.js'

/** A vector over a model's parameters: one Float32Array per block. A linear model has one block, a network one per layer. */
export type Blocks = readonly Float32Array[]

/** Names and lengths of the blocks of a `Blocks` value. Lengths are numbers of float32 elements. */
export interface Layout {
  readonly blocks: readonly BlockLayout[]
}

/** Name and length of a block. */
export interface BlockLayout {
  readonly name: string
  readonly length: number
  /** Kind of the layer, such as `attention`. @default not known */
  readonly kind?: string
  /** Ranges of biases and of scales and offsets of norms, which rules with weight decay leave out. @default none */
  readonly vectors?: readonly (readonly [from: number, to: number])[]
  /** Whether the elements are counters or codes, which are never rounded. @default false */
  readonly isExact?: boolean
}

/** Targets. Streams have float64 numbers, because targets may differ by less than a float32 number shows. */
export type Labels = Float32Array | Float64Array

/**
 * A batch of labelled inputs in compressed sparse row form. Row r has `indices` and `values` from `offsets[r]` up to
 * `offsets[r + 1]`. Arrays may be longer than their used part, which `size` and `offsets[size]` determine. A reader may reuse the
 * arrays for its next batch, so copy a batch to keep it.
 */
export interface Examples {
  /** Number of rows. */
  readonly size: number
  /** Targets: the class number 0 … C−1 for classification, any number for regression, NaN if unlabelled. */
  readonly labels: Labels
  /** size + 1 positions into `indices` and `values`. */
  readonly offsets: Int32Array
  /** Zero-based feature numbers. Within a row they need not be sorted or unique. */
  readonly indices: Int32Array
  readonly values: Float32Array
  /** Importance of each row, finite and ≥ 0: its gradient and its loss count that many times. @default 1 for all rows */
  readonly weights?: Float32Array
}

/** Rows [from, to), in the same arrays. */
export function rowsOf(examples: Examples, from: number, to: number): Examples {
  if (from === 0 && to === examples.size) return examples
  const { labels, offsets, indices, values, weights } = examples
  return {
    size: to - from,
    labels: labels.subarray(from),
    offsets: offsets.subarray(from),
    indices,
    values,
    weights: weights?.subarray(from)
  }
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

/**
 * A model and its loss. Stateless: parameters are arguments, so that the same learner serves w, the running average and the
 * predictors of neighbours.
 */
export interface Learner {
  readonly layout: Layout
  /** Number of parameters of a feature, which are adjacent in the first block; undefined for models without features. */
  readonly outputs?: number
  /** Whether the model predicts classes, so that `Score.hits` has a meaning. */
  readonly classifies: boolean
  /** How `score` encodes outcomes; undefined if it sends none. */
  readonly outcomeKind?: OutcomeKind
  /**
   * Multiply-accumulates to score a row, for models that score many rows together in less time, with an outcome for each; undefined for
   * others.
   */
  readonly rowMacs?: number
  /** New initial parameters, the same on every peer of one configuration. */
  initial(): Float32Array[]
  /** Scores rows [from, to) with `parameters`, adding to `into`. Unlabelled rows are not allowed. */
  score(parameters: Blocks, examples: Examples, from: number, to: number, into: Score): void
  /**
   * Adds the loss gradients (a sum, not a mean) of rows [from, to) at `parameters` into `sum`.
   */
  addGradient(parameters: Blocks, examples: Examples, from: number, to: number, sum: Blocks): void
  /**
   * The same as `addGradient` at `parameters` and `score` with `served`, in less time.
   * @throws ExampleError for a row that does not fit, after the rows before it were scored and added
   */
  scoreAndAdd?(
    parameters: Blocks,
    served: Blocks,
    examples: Examples,
    from: number,
    to: number,
    sum: Blocks,
    into: Score
  ): void
  /**
   * Adds the elements of the first block that differ from 0 in the gradients of rows [from, to), and possibly others. Undefined if
   * all may differ from 0.
   */
  readonly markGradient?: (examples: Examples, from: number, to: number, elements: Support) => void
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
  /**
   * Whether an element whose gradient is 0 keeps the bits of its parameter and state and has no effect on others. An update that
   * changes the state of every element is an exception, and changes those with state 1 too.
   * @default false
   */
  readonly isLocal?: boolean
  /** The same update with the same bits, in place. Not all rules have it. */
  stepInPlace?(now: RuleState, sum: Blocks, count: number, updates: number): void
  /**
   * Begins the same update with the same bits, section by section, for a rule that looks at each element of a block alone. Its state
   * has an equal number of blocks for each block of parameters, in their order, and then counters.
   */
  begin?(previous: RuleState, count: number, updates: number, contributors?: number): SectionStep
  /**
   * If the state contains it: for each element of a block, an estimate of the mean square of a batch's gradient sum, > 0. It
   * determines the precision of integer sums, so a rule that is sensitive to rounding has smaller estimates.
   * @param block number of the block
   * @param count number of gradients in the batch
   * @returns undefined if nothing is known yet
   */
  squares?(state: Blocks, block: number, count: number, updates: number): Squares | undefined
  /** Least weight γ of the newest parameters in a running average that follows the rule, 0 to 1. @default 0 */
  minWeight?(state: Blocks): number
  /**
   * An estimate of the mean square of an element of the first batch's sum, > 0, where `squares` are not known. @default that of gradients
   */
  readonly firstSquare?: number
  /** The rules of single layers, if these differ. */
  readonly parts?: readonly UpdateRule[]
  /**
   * The grid of a predictor, if the rule expects integer sums. Without it, sums are float32 numbers.
   * @param updates number of updates of the predictor
   */
  grid?(now: RuleState, updates: number): Grid
}

/** An update that has begun: all sections of all blocks follow, in their order, and then its end. */
export interface SectionStep {
  /** Number of blocks of the state for each block of parameters. */
  readonly states: number
  /**
   * Steps a section in place.
   * @param k number of the block
   * @param from first element
   * @param state the section of the block's state
   */
  section(k: number, from: number, parameters: Float32Array, state: readonly Float32Array[], sum: Float32Array): void
  /** The counters after the update. */
  end(): readonly Float32Array[]
}

/**
 * Running average of predictors. Pure. A predictor contains the average itself, or numbers from which it follows (`layout`, `contain`
 * and `read`).
 */
export interface Averaging {
  readonly name: string
  readonly description: string
  /**
   * What a predictor contains after an update.
   * @param previous what it contained before
   * @param parameters the new w
   * @param updates number of updates before
   * @param before w before
   * @param least `minWeight` of the rule @default 0
   */
  average(previous: Blocks, parameters: Blocks, updates: number, before: Blocks, least?: number): Float32Array[]
  /** Updates a section of a block with the bits of `average`, in place, if each element follows from that of w and its last value. */
  mixInto?(average: Float32Array, parameters: Float32Array, updates: number): void
  /** Whether elements of what a predictor contains change only where those of w do. @default false */
  readonly isLocal?: boolean
  /** Layout of what a predictor contains. @default that of the parameters */
  layout?(parameters: Layout): Layout
  /** What a predictor with this average contains. @default the average */
  contain?(average: Blocks, parameters: Blocks): Float32Array[]
  /** The average. @default what the predictor contains */
  read?(contained: Blocks, parameters: Blocks): Blocks
  /** Copies elements [from, to) of the first block of the average. @default see `read` */
  readElements?(contained: Blocks, parameters: Blocks, from: number, to: number, into: Float32Array): void
}

/** The content of a predictor: w, what it contains of the average, and the rule's state. */
export interface Content extends RuleState {
  readonly average: Blocks
}

/** The blocks of a content that consist of numbers with few bits: updates round the elements that they change. */
export interface RoundedBlocks {
  readonly parameters: readonly boolean[]
  readonly average: readonly boolean[]
  readonly state: readonly boolean[]
}

/** A batch size that follows from the parameters, whose last block holds it. */
export interface BatchRule {
  /** Least b. */
  readonly min: number
  /** Largest b. */
  readonly max: number
  /** b of the predictor with these parameters. */
  of(parameters: Blocks): number
  /** Counts own gradients that are added to a sum while no neighbour is known to hold the predictor. */
  countUnshared(sum: Blocks, count: number): void
}

/** A bound of the gradient sum of each contributor, which follows from the parameters. */
export interface InfluenceRule {
  /** Number of first blocks that are bounded. */
  readonly bounded: number
  /** Index of the block of scales in parameters, and of votes for larger ones in sums. */
  readonly index: number
  /** The scale of each bounded block: a contributor's sum of n gradients has a norm of at most scale · √n. 0: no bound yet. */
  of(parameters: Blocks): Float32Array
  /** Share of its inputs, 0 to 1, that a node counts as votes. @param lost share of the squared norm of its sums that the bound takes */
  vote(lost: number): number
}

/** The contributions of local steps that a node has not sent yet: their sum, and the number of gradients of one copy. */
export interface Unsent {
  readonly sum: Blocks
  readonly count: number
}

/** Limit of the elements of its own sums that a node sends. The others stay in the residual. */
export interface SumBudget {
  /** Index of the block of steps in parameters, and of counts in sums. */
  readonly place: number
  /** Largest number of elements of each block that a node sends in an epoch. */
  limits(): readonly number[]
  /** Counts elements of a block that a node sends. @param magnitude their total */
  count(counts: Float32Array, block: number, nonZero: number, magnitude: number): void
}

/** A content digest: 32 lower-case hexadecimal digits (128 bits) over the blocks' lengths and bits. */
export interface Digest {
  (blocks: readonly Blocks[]): string
  /** Keeps what is needed to compute digests of these arrays again after some of their elements have changed in place. */
  incremental?(blocks: readonly Blocks[]): IncrementalDigest
}

/** Digests of arrays that change. */
export interface IncrementalDigest {
  /** Elements of all blocks of this length have changed. @param indices in ascending order */
  changed(length: number, indices: Int32Array): void
  /** The digest now. @param blocks the same arrays, except those that are shorter than a hash tree's */
  of(blocks: readonly Blocks[]): string
}

/** Marks what the gradients of rows [from, to) have changed, for the owner of the sum. @returns undefined if they are dense */
export function markOf(
  { markGradient }: Learner,
  examples: Examples,
  from: number,
  to: number
): MarkElements | undefined {
  return markGradient && (elements => markGradient(examples, from, to, elements))
}

/** The learner for parameters that are the result of `updates` updates. */
export function learnerAfter(learner: Learner, updates: number): Learner {
  return learner.after?.(updates) ?? learner
}
