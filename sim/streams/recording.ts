/** Records the inputs of a stream in memory. */
import type { Examples } from '../../src/learning/index.js'
import { ScenarioError } from '../scenario.js'
import type { Inputs } from './inputs.js'

/** Limit on the features of all inputs, which take eight bytes each. */
const MAX_FEATURES = 2 ** 27

/** Records every input of a run, to find the best predictor in hindsight. */
export class Recording {
  readonly #labels: Float32Array
  readonly #offsets: Int32Array
  #indices: Int32Array
  #values: Float32Array
  #size = 0

  /**
   * @param inputs number of inputs of the run
   * @throws ScenarioError if they would exceed the memory limit
   */
  constructor({ dimension, features = dimension }: Inputs, inputs: number) {
    const limit = Math.floor(MAX_FEATURES / Math.max(1, features))
    if (inputs > limit) {
      throw new ScenarioError(
        `inputs: ${inputs} inputs do not fit in memory, as this stream's best predictor is found in hindsight; set at most ${limit}`
      )
    }
    this.#labels = new Float32Array(inputs)
    this.#offsets = new Int32Array(inputs + 1)
    this.#indices = new Int32Array(Math.ceil(features * inputs))
    this.#values = new Float32Array(this.#indices.length)
  }

  /** The inputs recorded so far. */
  get examples(): Examples {
    const [labels, offsets, indices, values] = [this.#labels, this.#offsets, this.#indices, this.#values]
    return { size: this.#size, labels, offsets, indices, values }
  }

  /** Copies the single row of `examples`. */
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

  /** Needed if the first inputs have more features than the average. */
  #grow(required: number): void {
    const capacity = Math.max(required, Math.ceil(1.5 * this.#indices.length))
    const indices = new Int32Array(capacity)
    const values = new Float32Array(capacity)
    indices.set(this.#indices)
    values.set(this.#values)
    this.#indices = indices
    this.#values = values
  }
}
