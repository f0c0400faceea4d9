/** What is measured over scored inputs, and how the outcomes of single inputs are encoded. */

/**
 * Figures over some inputs, each scored before it was learned. All but `inputs` weigh an input by its importance. Those that a
 * model does not have are absent.
 */
export interface Figures {
  readonly inputs: number
  /** Mean loss in nats; half the mean squared error for regression. */
  readonly loss: number
  /** Share of correct classes. */
  readonly accuracy?: number
  /** Mean over the classes that occur of the share of their inputs that was predicted correctly. */
  readonly balancedAccuracy?: number
  /** Two classes: the probability that an input of class 1 scores higher than one of class 0; absent until both occur. */
  readonly auc?: number
  /** Mean negative logarithm of the probability of the label, in nats. */
  readonly logLoss?: number
  /**
   * Expected calibration error: the mean difference between the probability of the predicted class and the share of correct
   * predictions, over ten bins of the probability (Naeini, Cooper and Hauskrecht, AAAI 2015).
   */
  readonly calibrationError?: number
  /** Inputs by class (rows) and predicted class (columns), for at most 20 classes. */
  readonly confusion?: readonly (readonly number[])[]
  /** Root mean squared error, in units of the target. */
  readonly rmse?: number
  /** Mean absolute error, in units of the target. */
  readonly mae?: number
  /** 1 − Σ(y − ŷ)²/Σ(y − ȳ)², the share of the variance that is predicted; absent if all targets are equal. */
  readonly r2?: number
  /** Exponential of the loss of a model that predicts the next token. */
  readonly perplexity?: number
}

/** Largest number of classes whose counts are kept by predicted class as well. */
export const MAX_MATRIX = 20

/** The outcome of one input, as far as it is known. */
export interface Outcome {
  /** Class number or target. */
  readonly label: number
  /** Predicted class number or number. */
  readonly prediction: number
}

/** The functions of a one-score model's loss that figures need. */
export interface ScoreLoss {
  readonly classifies: boolean
  value(score: number, label: number): number
  /** Probability of class 1, or the predicted number. */
  predict?(score: number): number
}

/**
 * How a model's outcomes are encoded, as a few numbers for each input:
 * - `two-class`, `number`: label, score (w·x)
 * - `classes`: label, predicted class, its probability, loss
 * - `sums`: loss, share of correct predictions, as means over a minibatch: of models that predict the next token, and of networks
 *   whose newest parameters are scored while they learn.
 */
export type OutcomeKind =
  | {
      readonly kind: 'two-class' | 'number'
      readonly loss: ScoreLoss
      /** Whether the loss is the negative logarithm of the label's probability. @default false */
      readonly isLogLoss?: boolean
    }
  | { readonly kind: 'classes'; readonly classes: number }
  | { readonly kind: 'sums'; readonly predicts: 'class' | 'number' | 'token' }

/** Numbers of one encoded outcome. */
export function widthOf({ kind }: OutcomeKind): number {
  return kind === 'classes' ? 4 : 2
}

/** Inputs whose outcomes `Outcomes.entries` can hold. */
export const OUTCOME_ROWS = 16

/** Receives outcomes in groups: the sender fills `entries` from the start, then calls `commit`. */
export interface Outcomes {
  /** `OUTCOME_ROWS` outcomes, encoded by the model's kind. */
  readonly entries: Float64Array
  /**
   * @param rows number of outcomes in `entries`, at most `OUTCOME_ROWS`
   * @param weight importance of each of them @default 1
   */
  commit(rows: number, weight?: number): void
}

/**
 * Sends the outcome of softmax for one input.
 * @param norm log Σ e^s of the scores
 */
export function commitClass(
  outcomes: Outcomes,
  scores: Float64Array,
  norm: number,
  label: number,
  predicted: number,
  weight = 1
): void {
  const { entries } = outcomes
  entries[0] = label
  entries[1] = predicted
  entries[2] = Math.exp(scores[predicted] - norm)
  entries[3] = norm - scores[label]
  outcomes.commit(1, weight)
}

/**
 * Sends encoded outcomes.
 * @param rows of `kind`, one after another
 * @param weights of the rows @default 1
 */
export function commitRows(outcomes: Outcomes, rows: Float64Array, kind: OutcomeKind, weights?: Float32Array): void {
  const width = widthOf(kind)
  for (const [row, weight] of weights?.entries() ?? []) {
    outcomes.entries.set(rows.subarray(row * width, (row + 1) * width))
    outcomes.commit(1, weight)
  }
  if (weights !== undefined) return
  for (let from = 0; from < rows.length; from += OUTCOME_ROWS * width) {
    const part = rows.subarray(from, from + OUTCOME_ROWS * width)
    outcomes.entries.set(part)
    outcomes.commit(part.length / width)
  }
}

/**
 * Sends the outcomes of inputs of which only sums are known.
 * @param weight summed weight of the inputs
 */
export function commitSums(outcomes: Outcomes, inputs: number, loss: number, hits: number, weight = inputs): void {
  for (let row = 0; row < OUTCOME_ROWS; row++) {
    outcomes.entries[2 * row] = weight > 0 ? loss / weight : 0
    outcomes.entries[2 * row + 1] = weight > 0 ? hits / weight : 0
  }
  for (let sent = 0; sent < inputs; sent += OUTCOME_ROWS) {
    outcomes.commit(Math.min(OUTCOME_ROWS, inputs - sent), weight / inputs)
  }
}
