/**
 * Inputs that need no file: the built-in streams `synthetic`, `digits` and `digits:test`, and rows of token numbers in memory.
 */
import { readPackaged } from '#source'
import { StreamOptionsError } from '../errors.js'
import type { SourceOptions } from '../options.js'
import { checkInteger } from '../options.js'
import { Random } from '../random.js'
import { addImage, RowBuffer, type Rows } from '../rows.js'
import type { BuiltInDefinition, InputOptions, Reader } from './format.js'

/**
 * The built-in stream `synthetic`: inputs with standard normal features x and labels from a linear model w*, so that the
 * optimum is known and regret is exact. It does not end: limit it with `maxRows`.
 *
 * `class`: P(y = 1 | x) = σ(w*·x), then flipped with probability `noise`. `number`: y = w*·x + noise · N(0, 1).
 */
const BATCH_ROWS = 256
/** Norm of w*, with which the logistic loss at the optimum is about 0.4 nats: neither separable nor mostly noise. */
export const TRUE_NORM = 3

export interface SyntheticOptions {
  /** `class`: logistic. `number`: least squares. @default 'class' */
  readonly target?: 'class' | 'number'
  /** Number of features without the constant one. @default 20 */
  readonly dimension?: number
  /**
   * Probability in [0, 0.5) that a class is flipped (default 0), or standard deviation ≥ 0 of a number's noise (default 0.1).
   * @default 0
   */
  readonly noise?: number
  /** Determines w* and all samples. @default 0 */
  readonly seed?: number
  /** Adds feature 0, which is always 1 and whose optimal weight is 0. @default false */
  readonly constant?: boolean
}

export const synthetic: BuiltInDefinition = {
  summary: 'endless inputs from a known linear model',
  options: ['dimension', 'noise'],
  open(options) {
    checkOptions(options)
    return openSynthetic(options)
  }
}

function checkOptions({ target, noise, dimension }: InputOptions): void {
  checkInteger('dimension', dimension, 1, 1_000_000)
  if (target !== 'number' && noise !== undefined && noise >= 0.5) {
    throw new StreamOptionsError(`noise is ${noise}: give the probability of a flipped class, below 0.5`)
  }
}

function openSynthetic(options: SyntheticOptions): Reader {
  const { target = 'class', dimension = 20, seed = 0, constant = false } = options
  return {
    dimension: dimension + (constant ? 1 : 0),
    classes: target === 'class' ? 2 : undefined,
    skipped: 0,
    repeatable: false,
    replayable: true,
    pass: () => generate(trueWeights(dimension, seed), noiseOf(options), target, new Random(seed), constant)
  }
}

function noiseOf({ target, noise }: SyntheticOptions): number {
  return noise ?? (target === 'number' ? 0.1 : 0)
}

/** A uniformly random direction with norm `TRUE_NORM`. */
export function trueWeights(dimension: number, seed: number): Float64Array {
  // The seed differs from that of the inputs; otherwise w* would equal the first input.
  const random = new Random(-1 - seed)
  const weights = Float64Array.from({ length: dimension }, () => random.normal())
  const length = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0))
  return weights.map(weight => (TRUE_NORM * weight) / length)
}

async function* generate(
  weights: Float64Array,
  noise: number,
  target: 'class' | 'number',
  random: Random,
  constant: boolean
): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  const shift = constant ? 1 : 0
  for (;;) {
    out.clear()
    out.reserve(BATCH_ROWS, BATCH_ROWS * (weights.length + 1))
    const { indices, values, labels, offsets } = out
    let entry = 0
    for (let row = 0; row < BATCH_ROWS; row++) {
      if (constant) {
        indices[entry] = 0
        values[entry++] = 1
      }
      let margin = 0
      for (let feature = 0; feature < weights.length; feature++) {
        const value = Math.fround(random.normal())
        margin += weights[feature] * value
        indices[entry] = feature + shift
        values[entry++] = value
      }
      labels[row] = target === 'class' ? drawClass(margin, noise, random) : margin + noise * random.normal()
      offsets[row + 1] = entry
    }
    out.size = BATCH_ROWS
    out.entries = entry
    yield out.view()
  }
}

function drawClass(margin: number, flip: number, random: Random): number {
  const isOne = random.uniform() < sigmoid(margin)
  const isFlipped = random.uniform() < flip
  return isOne !== isFlipped ? 1 : 0
}

function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x))
}

/**
 * The built-in streams `digits` and `digits:test`: 10,000 handwritten digits of MNIST, for use without any file. A fixed permutation mixes the classes; its last 1,000 digits are the test set.
 */
const CLASSES = 10
const PIXELS = 28 * 28
const TEST_DIGITS = 1000
/** Seed of the permutation that separates the test set from the training set. */
const SPLIT_SEED = 28

interface Digits {
  /** One byte per pixel, 0 … 255, one digit after another. */
  readonly pixels: Uint8Array
  readonly labels: Uint8Array
  /** The fixed permutation. */
  readonly order: Int32Array
}

export const digits: BuiltInDefinition = {
  summary: '9,000 handwritten digits, in an order that depends on the seed and the pass',
  options: [],
  open: options => openDigits('train', options)
}

export const digitsTest: BuiltInDefinition = {
  summary: '1,000 further digits, always in the same order',
  options: [],
  open: options => openDigits('test', options)
}

let loaded: Promise<Digits> | undefined

/** Does not load the digits: they are loaded when they are first read, not for their dimension and classes. */
function openDigits(part: 'train' | 'test', { seed = 0, constant = false, onRead }: InputOptions): Reader {
  const random = new Random(seed)
  let train: Int32Array | undefined
  async function* pass(): AsyncGenerator<Rows> {
    loaded ??= load()
    const digits = await loaded
    const split = digits.order.length - TEST_DIGITS
    if (part === 'test') {
      yield* batches(digits, digits.order.subarray(split), constant, onRead)
      return
    }
    train ??= digits.order.slice(0, split)
    permute(train, random)
    yield* batches(digits, train, constant, onRead)
  }
  return { dimension: PIXELS + (constant ? 1 : 0), classes: CLASSES, skipped: 0, repeatable: true, pass }
}

async function* batches(
  digits: Digits,
  order: Int32Array,
  constant: boolean,
  onRead: SourceOptions['onRead']
): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  for (let from = 0; from < order.length; from += BATCH_ROWS) {
    out.clear()
    out.reserve(BATCH_ROWS, BATCH_ROWS * (PIXELS + 1))
    for (const digit of order.subarray(from, from + BATCH_ROWS)) {
      addImage(out, digits.pixels, digit * PIXELS, PIXELS, digits.labels[digit], constant)
    }
    yield out.view()
    onRead?.(Math.min(1, (from + BATCH_ROWS) / order.length))
  }
}

/** The file holds one byte per label, then one byte per pixel, compressed by `scripts/pack-digits.ts`. */
async function load(): Promise<Digits> {
  const bytes = await readPackaged('digits')
  const count = bytes.length / (1 + PIXELS)
  const order = Int32Array.from({ length: count }, (_, index) => index)
  permute(order, new Random(SPLIT_SEED))
  return { labels: bytes.subarray(0, count), pixels: bytes.subarray(count), order }
}

/** Uniform permutation in place (R. A. Fisher and F. Yates; D. E. Knuth, TAOCP 2, algorithm 3.4.2P). */
function permute(order: Int32Array, random: Random): void {
  for (let last = order.length - 1; last > 0; last--) {
    const chosen = random.below(last + 1)
    const kept = order[chosen]
    order[chosen] = order[last]
    order[last] = kept
  }
}

/** Plain data, so that it can be transferred to another thread. */
export interface TokenRows {
  /** Number of tokens in each row. */
  readonly width: number
  /** The tokens of one row after another. */
  readonly values: Int32Array
  /** The class number of each row; undefined if the tokens are their own targets. */
  readonly labels?: Float64Array
  readonly classes?: number
}

/** Feature i of a row is its token at position i. Rows without labels have label 0. */
export function openTokens(tokens: TokenRows, onRead?: SourceOptions['onRead']): Reader {
  return {
    dimension: tokens.width,
    classes: tokens.classes,
    skipped: 0,
    repeatable: true,
    pass: () => read(tokens, onRead)
  }
}

/** All rows as one batch. */
export function rowsOfTokens(tokens: TokenRows): Rows {
  const out = new RowBuffer()
  append(out, tokens, 0, tokens.values.length / tokens.width)
  return out.view()
}

async function* read(tokens: TokenRows, onRead: SourceOptions['onRead']): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  const count = tokens.values.length / tokens.width
  for (let from = 0; from < count; from += BATCH_ROWS) {
    const to = Math.min(count, from + BATCH_ROWS)
    out.clear()
    append(out, tokens, from, to)
    yield out.view()
    onRead?.(to / count)
  }
}

function append(out: RowBuffer, { width, values, labels }: TokenRows, from: number, to: number): void {
  out.reserve(to - from, (to - from) * width)
  for (let row = from; row < to; row++) {
    out.labels[out.size] = labels === undefined ? 0 : labels[row]
    out.numeric[out.size] = 0
    for (let position = 0; position < width; position++) {
      out.indices[out.entries] = position
      out.values[out.entries++] = values[row * width + position]
    }
    out.offsets[++out.size] = out.entries
  }
}
