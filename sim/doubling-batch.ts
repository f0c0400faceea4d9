/**
 * b as a power of the number of inputs, without knowing how many there will be: Dekel et al. (JMLR 2012) choose b for a known m, and
 * the doubling trick repeats this for m = 1, 2, 4, …. The predictor carries the number of gradients on its lineage.
 */
import { type BatchRule, type Blocks, type CarriedBlock, type Layout, placeOf } from '../src/learning/index.js'

const NAME = 'gradients'

export class DoublingBatch implements BatchRule, CarriedBlock {
  readonly name = NAME
  readonly length = 1
  readonly min: number
  readonly max: number
  readonly #power: number
  readonly #place: number

  /**
   * @param min the least b
   * @param power ρ: b is the power ρ of the number of gradients, rounded down to a power of two
   * @param inputs number of inputs of the run
   * @param layout of the parameters of the model that carries it
   */
  constructor(min: number, power: number, inputs: number, layout: Layout) {
    this.min = min
    this.max = Math.max(min, Math.round(inputs ** power))
    this.#power = power
    this.#place = placeOf(NAME, layout)
  }

  initial(): Float32Array {
    return new Float32Array(1)
  }

  of(parameters: Blocks): number {
    const gradients = Math.max(1, parameters[this.#place][0])
    const horizon = 2 ** Math.floor(Math.log2(gradients))
    return Math.min(this.max, Math.max(this.min, Math.round(horizon ** this.#power)))
  }

  countUnshared(): void {}

  next([before]: Float32Array, _added: Float32Array, count: number): Float32Array {
    return Float32Array.of(before + count)
  }
}
