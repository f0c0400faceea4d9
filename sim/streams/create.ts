/**
 * Creates the inputs of a scenario, in the order of their arrival at the nodes: when inputs arrive at each node and when its
 * periods end, and synthetic streams of dense standard normal features or sparse binary features.
 */
import { portableExp } from '../../src/numeric/exp.js'
import type { Random } from '../engine/random.js'
import { type Scenario, ScenarioError } from '../scenario.js'
import { type Inputs, type RecordedStream, replay, type StreamName } from './inputs.js'

/** Times at which inputs arrive at each node and its periods end: aligned or with offsets, at equal or log-normal rates. */
export interface Arrivals {
  /** Virtual milliseconds between two inputs of each node. */
  readonly intervals: Float64Array
  /** Time of each node's first input. */
  readonly firstInputs: Float64Array
  /** Time at which each node's first period ends. */
  readonly firstTicks: Float64Array
}

export function drawArrivals(scenario: Scenario, random: Random): Arrivals {
  const { nodes, interval, period, speedSpread, phases, warmup } = scenario
  const speedDraws = random.fork('speeds')
  const speeds = Float64Array.from({ length: nodes }, () => portableExp(speedSpread * speedDraws.normal()))
  const mean = speeds.reduce((sum, speed) => sum + speed, 0) / nodes
  const intervals = speeds.map(speed => (speedSpread === 0 ? interval : (interval * mean) / speed))
  const offsetDraws = random.fork('offsets')
  const phase = (): number => (phases === 'aligned' ? 1 : offsetDraws.next())
  return {
    intervals,
    firstInputs: intervals.map(each => warmup + each * phase()),
    firstTicks: intervals.map(() => period * phase())
  }
}

interface InputOptions extends SyntheticOptions {
  readonly stream: StreamName
  /** Share of inputs whose class is replaced by another one. */
  readonly labelNoise: number
}

/**
 * @param recorded the data of the stream `file`
 * @throws ScenarioError if the data is missing
 */
export function createInputs(options: InputOptions, random: Random, recorded?: RecordedStream): Inputs {
  const inputs = createStream(options, random, recorded)
  const { labelNoise } = options
  return labelNoise > 0 ? withLabelNoise(inputs, labelNoise, random.fork('label noise')) : inputs
}

function createStream(options: InputOptions, random: Random, recorded: RecordedStream | undefined): Inputs {
  const { stream } = options
  switch (stream) {
    case 'logistic':
      return dense('logistic', options, random)
    case 'least-squares':
      return dense('linear', options, random)
    case 'sparse':
      return sparse(options, random)
    case 'file':
      if (recorded === undefined) {
        throw new ScenarioError('stream file: no data; pass the recorded stream as the option data of simulate')
      }
      return replay(recorded)
    default:
      return stream satisfies never
  }
}

/** Replaces a share of the classes by another class. The optimum of the noisy stream is then unknown. */
function withLabelNoise(inputs: Inputs, share: number, random: Random): Inputs {
  const { classes = 2, fresh } = inputs
  return {
    ...inputs,
    optimum: undefined,
    fresh: fresh && (() => withLabelNoise(fresh(), share, random.fork(OTHER_DRAWS))),
    next() {
      const row = inputs.next()
      if (random.next() < share) row.labels[0] = (row.labels[0] + 1 + random.below(classes - 1)) % classes
      return row
    }
  }
}

interface SyntheticOptions extends TargetOptions {
  /** Standard deviation of the noise of `least-squares`. */
  readonly noise: number
}

/** The generator of an input's draws, and that of other draws from the same distribution. */
const DRAWS = 'inputs'
const OTHER_DRAWS = 'other inputs'

/** Non-zero features of a `sparse` input. */
const SPARSE_FEATURES = 12

/** Standard normal features; P(y = 1) = σ(w*·x), or y = w*·x + noise. */
function dense(model: 'logistic' | 'linear', options: SyntheticOptions, random: Random, draws = DRAWS): Inputs {
  const { dimension, noise } = options
  const target = new Target(options, random)
  const draw = random.fork(draws)
  const row = emptyRow(dimension)
  for (let i = 0; i < dimension; i++) row.indices[i] = i
  row.offsets[1] = dimension
  return {
    model,
    dimension,
    ...optimumOf(target),
    features: dimension,
    fresh: () => dense(model, options, random, OTHER_DRAWS),
    next() {
      let score = 0
      for (let i = 0; i < dimension; i++) {
        row.values[i] = draw.normal()
        score += target.weight(i) * row.values[i]
      }
      row.labels[0] = model === 'linear' ? score + noise * draw.normal() : Number(draw.next() < sigmoid(score))
      target.advance()
      return row
    }
  }
}

/** Binary features with power-law frequencies, like the words of search queries; P(y = 1) = σ(w*·x). */
function sparse(options: SyntheticOptions, random: Random, draws = DRAWS): Inputs {
  const { dimension } = options
  const features = Math.min(SPARSE_FEATURES, dimension)
  const target = new Target(options, random, Math.sqrt(dimension / SPARSE_FEATURES))
  const draw = random.fork(draws)
  const row = emptyRow(SPARSE_FEATURES)
  row.values.fill(1)
  row.offsets[1] = features
  return {
    model: 'logistic',
    dimension,
    ...optimumOf(target),
    features,
    fresh: () => sparse(options, random, OTHER_DRAWS),
    next() {
      let score = 0
      let count = 0
      while (count < features) {
        // Inverse transform sampling: the distribution function is proportional to the logarithm of the rank.
        const feature = Math.min(dimension - 1, Math.floor((dimension + 1) ** draw.next()) - 1)
        if (row.indices.subarray(0, count).includes(feature)) continue
        row.indices[count++] = feature
        score += target.weight(feature)
      }
      row.labels[0] = Number(draw.next() < sigmoid(score))
      target.advance()
      return row
    }
  }
}

/** The optimum, if it is constant. */
function optimumOf(target: Target): Pick<Inputs, 'optimum' | 'varies'> {
  return target.rotates ? { varies: true } : { optimum: [target.start] }
}

function emptyRow(features: number) {
  return {
    size: 1,
    labels: new Float32Array(1),
    offsets: new Int32Array(2),
    indices: new Int32Array(features),
    values: new Float32Array(features)
  }
}

function sigmoid(score: number): number {
  return 1 / (1 + portableExp(-score))
}

/** The optimum w* of a synthetic stream: constant, or rotating in a plane while inputs are drawn. */
interface TargetOptions {
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
