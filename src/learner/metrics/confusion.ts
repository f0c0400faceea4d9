/** Figures that follow from counts of inputs by class and predicted class, and from counts by predicted probability. */
import { type Figures, MAX_MATRIX } from './figures.js'

/** Counts of inputs by class and predicted class. */
export class Confusion {
  readonly #inputs: Float64Array
  readonly #hits: Float64Array
  /** classes × classes, row by row; undefined above `MAX_MATRIX` classes. */
  readonly #matrix: Float64Array | undefined

  constructor(private readonly classes: number) {
    this.#inputs = new Float64Array(classes)
    this.#hits = new Float64Array(classes)
    if (classes <= MAX_MATRIX) this.#matrix = new Float64Array(classes * classes)
  }

  add(label: number, predicted: number, inputs = 1): void {
    this.#inputs[label] += inputs
    if (label === predicted) this.#hits[label] += inputs
    if (this.#matrix !== undefined) this.#matrix[label * this.classes + predicted] += inputs
  }

  /** Number of inputs of a class. */
  inputs(label: number): number {
    return this.#inputs[label]
  }

  get figures(): Partial<Figures> {
    const occurring = [...this.#inputs.keys()].filter(label => this.#inputs[label] > 0)
    if (occurring.length === 0) return {}
    const sum = (of: (label: number) => number) => occurring.reduce((total, label) => total + of(label), 0)
    const { classes } = this
    const matrix = this.#matrix
    const rows = matrix && Array.from({ length: classes }, (_, c) => [...matrix.slice(c * classes, (c + 1) * classes)])
    return {
      accuracy: sum(label => this.#hits[label]) / sum(label => this.#inputs[label]),
      balancedAccuracy: sum(label => this.#hits[label] / this.#inputs[label]) / occurring.length,
      ...(rows === undefined ? {} : { confusion: rows })
    }
  }
}

const BINS = 10

/** Counts by the probability of the predicted class. */
export class Calibration {
  readonly #inputs = new Float64Array(BINS)
  readonly #probability = new Float64Array(BINS)
  readonly #hits = new Float64Array(BINS)

  /** Adds inputs with one probability, of which `hits` were predicted correctly. */
  add(probability: number, inputs: number, hits: number): void {
    const bin = Math.min(BINS - 1, Math.max(0, Math.ceil(BINS * probability) - 1))
    this.#inputs[bin] += inputs
    this.#probability[bin] += inputs * probability
    this.#hits[bin] += hits
  }

  /** The expected calibration error; undefined without inputs. */
  get error(): number | undefined {
    const inputs = this.#inputs.reduce((sum, count) => sum + count, 0)
    if (inputs === 0) return undefined
    const difference = this.#hits.reduce((sum, hits, bin) => sum + Math.abs(hits - this.#probability[bin]), 0)
    return difference / inputs
  }
}
