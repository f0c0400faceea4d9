/** Every served input of a run, kept where the best predictor can only be found when all are known. */
import type { Examples } from '../../src/learner/index.js'
import { ScenarioError } from '../scenario.js'
import type { Inputs } from '../streams/inputs.js'

/** Features of all inputs together, at eight bytes each. */
const MOST_FEATURES = 2 ** 27

export class Recording {
  readonly #labels: Float32Array
  readonly #offsets: Int32Array
  #indices: Int32Array
  #values: Float32Array
  #size = 0

  /**
   * @param inputs of the whole run
   * @throws ScenarioError if so many would fill the memory
   */
  constructor({ dimension, features = dimension }: Inputs, inputs: number) {
    const most = Math.floor(MOST_FEATURES / Math.max(1, features))
    if (inputs > most) {
      throw new ScenarioError(
        `inputs: ${inputs} are too many for a stream whose best predictor is found in hindsight, with all inputs in memory: give at most ${most}`
      )
    }
    this.#labels = new Float32Array(inputs)
    this.#offsets = new Int32Array(inputs + 1)
    this.#indices = new Int32Array(Math.ceil(features * inputs))
    this.#values = new Float32Array(this.#indices.length)
  }

  /** The inputs so far. */
  get examples(): Examples {
    const [labels, offsets, indices, values] = [this.#labels, this.#offsets, this.#indices, this.#values]
    return { size: this.#size, labels, offsets, indices, values }
  }

  /** Copies the one row of `examples`. */
  add({ labels, offsets, indices, values }: Examples): void {
    const from = this.#offsets[this.#size]
    const length = offsets[1]
    if (from + length > this.#indices.length) this.#grow(from + length)
    for (let i = 0; i < length; i++) {
      this.#indices[from + i] = indices[i]
      this.#values[from + i] = values[i]
    }
    this.#labels[this.#size++] = labels[0]
    this.#offsets[this.#size] = from + length
  }

  /** Where the first inputs have more features than the average. */
  #grow(least: number): void {
    const capacity = Math.max(least, Math.ceil(1.5 * this.#indices.length))
    const indices = new Int32Array(capacity)
    const values = new Float32Array(capacity)
    indices.set(this.#indices)
    values.set(this.#values)
    this.#indices = indices
    this.#values = values
  }
}
