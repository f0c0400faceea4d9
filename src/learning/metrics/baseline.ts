/** Figures of predictions that learn nothing from features: the most frequent class or the mean, and the label of the row before. */
import type { BaselineFigures } from './figures.js'

/** The labels of rows; NaN for none. */
interface Labelled {
  readonly size: number
  readonly labels: ArrayLike<number>
  /** @default 1 */
  readonly weights?: ArrayLike<number>
}

const FIRST = 64

/** Labels of the rows so far, with their weights. Rows without a label do not count. */
export class Baseline {
  readonly #classifies: boolean
  readonly #counts = new Map<number, number>()
  /** Counts of the first classes, which take less time. */
  readonly #first = new Float64Array(FIRST)
  #rows = 0
  #weight = 0
  #mean = 0
  #variation = 0
  #last = Number.NaN
  /** Weight of rows with a row before, and what their label and the one before have in common. */
  #pairs = 0
  #equal = 0
  #steps = 0

  constructor(classifies: boolean) {
    this.#classifies = classifies
  }

  /** Adds rows [from, to). @param from @default 0 @param to @default all */
  add({ size, labels, weights }: Labelled, from = 0, to = size): void {
    for (let row = from; row < to; row++) {
      const label = labels[row]
      if (Number.isNaN(label)) continue
      const weight = weights?.[row] ?? 1
      this.#rows++
      if (weight > 0) this.#count(label, weight)
      if (!Number.isNaN(this.#last)) {
        this.#pairs += weight
        if (label === this.#last) this.#equal += weight
        this.#steps += weight * (label - this.#last) ** 2
      }
      this.#last = label
    }
  }

  #count(label: number, weight: number): void {
    this.#weight += weight
    if (this.#classifies) {
      if (label < FIRST) this.#first[label] += weight
      else this.#counts.set(label, (this.#counts.get(label) ?? 0) + weight)
      return
    }
    const difference = label - this.#mean
    this.#mean += (weight * difference) / this.#weight
    this.#variation += weight * difference * (label - this.#mean)
  }

  /** Undefined without two rows with a label. */
  get figures(): BaselineFigures | undefined {
    if (this.#rows < 2 || this.#weight === 0 || this.#pairs === 0) return undefined
    if (!this.#classifies) {
      const variance = this.#variation / this.#weight
      return {
        rmse: Math.sqrt(variance),
        loss: variance / 2,
        previous: { rmse: Math.sqrt(this.#steps / this.#pairs) }
      }
    }
    const shares = [...this.#first, ...this.#counts.values()]
      .filter(count => count > 0)
      .map(count => count / this.#weight)
    return {
      accuracy: Math.max(...shares),
      loss: -shares.reduce((sum, share) => sum + share * Math.log(share), 0),
      previous: { accuracy: this.#equal / this.#pairs }
    }
  }
}

/** Rows from which a loss says something. */
const MIN_ROWS = 200
/** A loss is above that of a constant prediction if it is by this factor. */
const CLEARLY = 1.05

/** A model, as far as a baseline depends on it. */
interface Scored {
  readonly model: string
  readonly network?: { readonly target: { readonly kind: 'class' | 'number' | 'next-token' } }
}

/** Whether losses are in nats, or half the squared error, as those of a baseline. */
export function hasPlainLoss({ model }: Scored): boolean {
  return ['logistic', 'softmax', 'linear', 'network'].includes(model)
}

/** The baseline of a model; undefined if its rows have no labels. @param classifies whether labels are classes */
export function baselineFor({ model, network }: Scored, classifies: boolean): Baseline | undefined {
  return network?.target.kind === 'next-token' || model === 'external' ? undefined : new Baseline(classifies)
}

/** What to say of a loss that a constant prediction has as well; undefined for others. @param loss in the unit of the baseline */
export function uselessLoss(
  rows: number,
  loss: number | undefined,
  baseline: BaselineFigures | undefined
): string | undefined {
  if (loss === undefined || baseline === undefined || rows < MIN_ROWS) return undefined
  if (!(loss > CLEARLY * baseline.loss) || loss - baseline.loss < 1e-6) return undefined
  const shown = (value: number) => Number(value.toPrecision(4))
  return `the loss, ${shown(loss)}, is above that of a constant prediction, ${shown(baseline.loss)}: scale the features (--scale standard, or before), use a smaller step (--rule NAME,step=…), or check that they say something about the label`
}
