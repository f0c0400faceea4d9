/** Figures of a predictor over labelled inputs: those of progressive metrics, by class, and correlations. */
import { pearson, spearman } from './correlation.js'
import { type Figures, OUTCOME_ROWS, type OutcomeKind, type Outcomes, widthOf } from './figures.js'
import { figuresOf } from './progressive.js'
import { createTally, type Tally } from './tallies.js'

/** Numbers above which correlations are left out. */
const MOST_NUMBERS = 1_000_000

/** Figures of one class. */
export interface ClassFigures {
  /** Summed weight of its inputs. */
  readonly inputs: number
  /** Share of the inputs with this prediction that are of the class. 0 if there are none. */
  readonly precision: number
  /** Share of the inputs of the class with this prediction. 0 if there are none. */
  readonly recall: number
  /** Harmonic mean of precision and recall, 0 if both are 0. */
  readonly f1: number
}

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
  readonly #classes: ClassCounts | undefined
  readonly #targets: number[] = []
  readonly #predictions: number[] = []
  #inputs = 0
  #surplus = 0

  constructor(kind: OutcomeKind) {
    this.#kind = kind
    this.#tally = createTally(kind)
    this.entries = new Float64Array(OUTCOME_ROWS * widthOf(kind))
    if (kind.kind === 'two-class') this.#classes = new ClassCounts(2)
    if (kind.kind === 'classes') this.#classes = new ClassCounts(kind.classes)
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
    return { ...figures, ...this.#classes?.figures, ...this.#correlations }
  }

  get #correlations(): Pick<EvaluationFigures, 'pearson' | 'spearman'> {
    const [targets, predictions] = [this.#targets, this.#predictions]
    if (targets.length > MOST_NUMBERS || this.#surplus !== 0) return {}
    const [linear, ranked] = [pearson(targets, predictions), spearman(targets, predictions)]
    return linear === undefined || ranked === undefined ? {} : { pearson: linear, spearman: ranked }
  }
}

/** Counts of inputs by class, by predicted class, and of both together. */
class ClassCounts {
  readonly #inputs: Float64Array
  readonly #predicted: Float64Array
  readonly #hits: Float64Array

  constructor(classes: number) {
    this.#inputs = new Float64Array(classes)
    this.#predicted = new Float64Array(classes)
    this.#hits = new Float64Array(classes)
  }

  add(label: number, predicted: number, weight: number): void {
    this.#inputs[label] += weight
    this.#predicted[predicted] += weight
    if (label === predicted) this.#hits[label] += weight
  }

  get figures(): Pick<EvaluationFigures, 'byClass' | 'macroF1' | 'matthews'> {
    const [inputs, predicted, hits] = [this.#inputs, this.#predicted, this.#hits]
    const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0)
    const byClass = Array.from(inputs, (count, k) => ({
      inputs: count,
      precision: share(hits[k], predicted[k]),
      recall: share(hits[k], count),
      f1: share(2 * hits[k], count + predicted[k])
    }))
    const occurring = byClass.filter((_, k) => inputs[k] + predicted[k] > 0)
    if (occurring.length === 0) return {}
    return {
      byClass,
      macroF1: sum(occurring.map(({ f1 }) => f1)) / occurring.length,
      matthews: matthews(inputs, predicted, hits)
    }
  }
}

function matthews(inputs: Float64Array, predicted: Float64Array, hits: Float64Array): number {
  const total = sum(inputs)
  const both = sum(inputs.map((count, k) => count * predicted[k]))
  const root = Math.sqrt((total ** 2 - sum(inputs.map(n => n * n))) * (total ** 2 - sum(predicted.map(n => n * n))))
  return root > 0 ? (sum(hits) * total - both) / root : 0
}

function sum(values: ArrayLike<number>): number {
  return Array.from(values).reduce((total, value) => total + value, 0)
}
