/** What the bounds need to know of the inputs: for the logistic loss ‖∇f‖ ≤ ‖x‖, and the smoothness is at most ‖x‖²/4. */
import type { Examples } from '../../src/learner/index.js'
import type { BoundTerms } from '../bounds.js'

export class Moments {
  #count = 0
  #sum = 0
  #most = 0

  /** Takes in the one row of `examples`. */
  see({ values, offsets }: Examples): void {
    const length = offsets[1]
    let square = 0
    for (let i = 0; i < length; i++) square += values[i] * values[i]
    this.#count++
    this.#sum += square
    if (square > this.#most) this.#most = square
  }

  terms(optimum: Float32Array): BoundTerms {
    const square = optimum.reduce((sum, weight) => sum + weight * weight, 0)
    return { radius: Math.sqrt(square / 2), smoothness: this.#most / 4, deviation: Math.sqrt(this.#sum / this.#count) }
  }
}
