/**
 * The built-in streams `digits` and `digits:test`: 10,000 handwritten digits of MNIST, for use without any file. A fixed permutation mixes the classes; its last 1,000 digits are the test set.
 */
import { readPackaged } from '#source'
import type { BuiltInDefinition, InputOptions, Reader } from './format.js'
import { addImage } from './image.js'
import { Random } from './random.js'
import { RowBuffer, type Rows } from './rows.js'
import type { SourceOptions } from './source.js'

const CLASSES = 10
const PIXELS = 28 * 28
const TEST_DIGITS = 1000
const BATCH_ROWS = 256
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
