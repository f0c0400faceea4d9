/** Figures of a predictor over labelled inputs: those of progressive metrics, by class, and correlations. */
import { meanOf } from '../../numeric/numbers.js'
import { type ClassFigures, Confusion, OUTCOME_ROWS, type OutcomeKind, type Outcomes, widthOf } from './confusion.js'
import type { Figures } from './figures.js'
import { createTally, figuresOf, type Tally } from './tallies.js'

/** Numbers above which correlations are left out. */
const MOST_NUMBERS = 1_000_000

/** Figures of an evaluation. Those that a model does not have are absent. */
export interface EvaluationFigures extends Figures {
  /** In the order of the class numbers. */
  readonly byClass?: readonly ClassFigures[]
  /** Mean of F1 over the classes that occur or are predicted. */
  readonly macroF1?: number
  /** Matthews' correlation of classes and predictions, for any number of classes (Gorodkin, 2004). 0 if only one is predicted or occurs. */
  readonly matthews?: number
  /** Pearson's correlation of targets and predictions; absent above a million inputs, with weights, and if one of them is constant. */
  readonly pearson?: number
  /** Spearman's rank correlation, likewise. */
  readonly spearman?: number
}

/** Collects the outcomes of an evaluation. */
export class Evaluation implements Outcomes {
  readonly entries: Float64Array
  readonly #kind: OutcomeKind
  readonly #tally: Tally
  readonly #classes: Confusion | undefined
  readonly #targets: number[] = []
  readonly #predictions: number[] = []
  #inputs = 0
  #surplus = 0

  constructor(kind: OutcomeKind) {
    this.#kind = kind
    this.#tally = createTally(kind)
    this.entries = new Float64Array(OUTCOME_ROWS * widthOf(kind))
    if (kind.kind === 'two-class') this.#classes = new Confusion(2)
    if (kind.kind === 'classes') this.#classes = new Confusion(kind.classes)
  }

  commit(rows: number, weight = 1): void {
    const { entries } = this
    const kind = this.#kind
    const width = widthOf(kind)
    this.#tally.add(entries, 0, rows * width, weight)
    this.#inputs += rows
    this.#surplus += rows * (weight - 1)
    for (let i = 0; i < rows * width; i += width) {
      const [label, score] = [entries[i], entries[i + 1]]
      if (kind.kind === 'classes') this.#classes?.add(label, score, weight)
      else if (kind.kind === 'two-class') this.#classes?.add(label, Number(score > 0), weight)
      else if (kind.kind === 'number' && this.#targets.length <= MOST_NUMBERS) {
        this.#targets.push(label)
        this.#predictions.push(kind.loss.predict?.(score) ?? score)
      }
    }
  }

  /** @param loss summed loss of all inputs */
  figures(loss: number): EvaluationFigures {
    const weight = this.#inputs + this.#surplus
    const figures = figuresOf(this.#kind, this.#inputs, weight > 0 ? loss / weight : 0, this.#tally)
    const { byClass, macroF1, matthews } = this.#classes ?? {}
    return { ...figures, ...(macroF1 !== undefined && { byClass, macroF1, matthews }), ...this.#correlations }
  }

  get #correlations(): Pick<EvaluationFigures, 'pearson' | 'spearman'> {
    const [targets, predictions] = [this.#targets, this.#predictions]
    if (targets.length > MOST_NUMBERS || this.#surplus !== 0) return {}
    const [linear, ranked] = [pearson(targets, predictions), spearman(targets, predictions)]
    return linear === undefined || ranked === undefined ? {} : { pearson: linear, spearman: ranked }
  }
}

/** Pearson's correlation; undefined if one of the lists is constant or empty. */
export function pearson(a: ArrayLike<number>, b: ArrayLike<number>): number | undefined {
  const [meanA, meanB] = [meanOf(a), meanOf(b)]
  let [both, squaresA, squaresB] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] - meanA, b[i] - meanB]
    both += x * y
    squaresA += x * x
    squaresB += y * y
  }
  return squaresA === 0 || squaresB === 0 || a.length === 0 ? undefined : both / Math.sqrt(squaresA * squaresB)
}

/** Spearman's correlation, that of the ranks. Equal numbers have the mean of their ranks. */
export function spearman(a: ArrayLike<number>, b: ArrayLike<number>): number | undefined {
  return pearson(ranks(a), ranks(b))
}

function ranks(values: ArrayLike<number>): Float64Array {
  const order = Uint32Array.from(values, (_, i) => i).sort((i, j) => values[i] - values[j])
  const result = new Float64Array(values.length)
  for (let from = 0; from < order.length; ) {
    let to = from + 1
    while (to < order.length && values[order[to]] === values[order[from]]) to++
    for (let i = from; i < to; i++) result[order[i]] = (from + to - 1) / 2
    from = to
  }
  return result
}
