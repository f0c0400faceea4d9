/** w* of a synthetic stream: fixed, or turning in a plane while inputs are drawn. */
import type { Random } from '../engine/random.js'

export interface TargetOptions {
  readonly dimension: number
  /** Turns that w* makes during the run; 0: none. */
  readonly drift: number
  /** Inputs of the run. */
  readonly inputs: number
}

/** Length of the optimum: neither separable nor hopeless. */
const LENGTH = 2

export class Target {
  /** w* at the start. */
  readonly start: Float32Array
  /** Where a quarter turn leads; undefined if w* does not move. */
  readonly #quarter: Float32Array | undefined
  readonly #anglePerInput: number
  #inputs = 0
  #cosine = 1
  #sine = 0

  /** @param scale factor on w*, for features that are shorter than standard normal ones */
  constructor({ dimension, drift, inputs }: TargetOptions, random: Random, scale = 1) {
    this.start = direction(dimension, random.fork('optimum')).map(weight => weight * scale)
    this.#anglePerInput = (2 * Math.PI * drift) / inputs
    if (drift > 0) this.#quarter = across(this.start, random.fork('drift'))
  }

  get moves(): boolean {
    return this.#quarter !== undefined
  }

  /** The weight of a feature now. */
  weight(feature: number): number {
    const quarter = this.#quarter
    if (quarter === undefined) return this.start[feature]
    return this.#cosine * this.start[feature] + this.#sine * quarter[feature]
  }

  /** An input has been drawn. */
  advance(): void {
    if (this.#quarter === undefined) return
    const angle = ++this.#inputs * this.#anglePerInput
    this.#cosine = Math.cos(angle)
    this.#sine = Math.sin(angle)
  }
}

function direction(dimension: number, random: Random): Float32Array {
  return stretched(
    Float32Array.from({ length: dimension }, () => random.normal()),
    LENGTH
  )
}

/** Of the same length and at a right angle. */
function across(weights: Float32Array, random: Random): Float32Array {
  const other = direction(weights.length, random)
  const square = dot(weights, weights)
  const share = dot(weights, other) / square
  return stretched(
    other.map((weight, i) => weight - share * weights[i]),
    Math.sqrt(square)
  )
}

function stretched(weights: Float32Array, length: number): Float32Array {
  const before = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0))
  return weights.map(weight => (weight * length) / before)
}

function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, i) => sum + value * b[i], 0)
}
