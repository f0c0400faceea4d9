/** The optimum w* of a synthetic stream: constant, or rotating in a plane while inputs are drawn. */
import type { Random } from '../engine/random.js'

export interface TargetOptions {
  readonly dimension: number
  /** Full rotations of w* during the run; 0: constant. */
  readonly drift: number
  /** Inputs of the run. */
  readonly inputs: number
}

/** Norm of the optimum: the classes are learnable but not separable. */
const TARGET_NORM = 2

export class Target {
  /** w* at the start. */
  readonly start: Float32Array
  /** w* after a quarter rotation; undefined if w* is constant. */
  readonly #quarter: Float32Array | undefined
  /** Rotation of one input. */
  readonly #step: Rotation
  #cosine = 1
  #sine = 0

  /** @param scale multiplies w*, for inputs of smaller norm than standard normal ones */
  constructor({ dimension, drift, inputs }: TargetOptions, random: Random, scale = 1) {
    this.start = direction(dimension, random.fork('optimum')).map(weight => weight * scale)
    this.#step = rotation((2 * Math.PI * drift) / inputs)
    if (drift > 0) this.#quarter = orthogonal(this.start, random.fork('drift'))
  }

  get rotates(): boolean {
    return this.#quarter !== undefined
  }

  /** The current weight of a feature. */
  weight(feature: number): number {
    const quarter = this.#quarter
    if (quarter === undefined) return this.start[feature]
    return this.#cosine * this.start[feature] + this.#sine * quarter[feature]
  }

  /** Call after each input. */
  advance(): void {
    if (this.#quarter === undefined) return
    const [cosine, sine] = [this.#cosine, this.#sine]
    const step = this.#step
    this.#cosine = cosine * step.cosine - sine * step.sine
    this.#sine = sine * step.cosine + cosine * step.sine
  }
}

interface Rotation {
  readonly cosine: number
  readonly sine: number
}

/** Cosine and sine of an angle, which `Math.cos` may compute differently on other machines. */
function rotation(angle: number): Rotation {
  if (Math.abs(angle) > 0.1) {
    const { cosine, sine } = rotation(angle / 2)
    return { cosine: cosine * cosine - sine * sine, sine: 2 * sine * cosine }
  }
  const square = angle * angle
  return {
    cosine: 1 - (square / 2) * (1 - (square / 12) * (1 - (square / 30) * (1 - square / 56))),
    sine: angle * (1 - (square / 6) * (1 - (square / 20) * (1 - (square / 42) * (1 - square / 72))))
  }
}

function direction(dimension: number, random: Random): Float32Array {
  return scaledTo(
    Float32Array.from({ length: dimension }, () => random.normal()),
    TARGET_NORM
  )
}

/** A random vector of the same norm, orthogonal to `weights`. */
function orthogonal(weights: Float32Array, random: Random): Float32Array {
  const other = direction(weights.length, random)
  const square = dot(weights, weights)
  const share = dot(weights, other) / square
  return scaledTo(
    other.map((weight, i) => weight - share * weights[i]),
    Math.sqrt(square)
  )
}

function scaledTo(weights: Float32Array, length: number): Float32Array {
  const norm = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0))
  return weights.map(weight => (weight * length) / norm)
}

function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, i) => sum + value * b[i], 0)
}
