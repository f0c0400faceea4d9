/** The code of integer sums: how fast blocks as large as a model of 10 million weights are encoded and decoded. */
import { decodeIntegers, encodeIntegers } from '../../src/admb/integers.js'
import { zeroBlock } from '../../src/base/support.js'
import { Random } from '../../src/streams/random.js'
import { median, type Row } from './row.js'

const LENGTH = 10_000_000
const RUNS = 7
/** Mean magnitudes of Laplacian elements before rounding. */
const SCALES = [0.12, 0.35, 0.8, 2, 8, 40]

export async function* bench(): AsyncGenerator<Row> {
  for (const scale of SCALES) {
    const block = laplacian(scale)
    const bytes = encodeIntegers(block)
    const bits = (8 * bytes.length) / LENGTH
    const name = `10 M elements, ${bits.toFixed(2)} bits each`
    const encoding = timed(() => encodeIntegers(block))
    const into = zeroBlock(LENGTH)
    const decoding = timed(() => decodeIntegers(bytes, 0, bytes.length, into))
    const speed = (ms: number) => (4 * LENGTH) / 1000 / ms
    const details = (ms: number) => ({ 'MB/s of float32': speed(ms) })
    yield { name: `${name}: encode`, value: encoding, unit: 'ms', target: { most: 50 }, details: details(encoding) }
    yield { name: `${name}: decode`, value: decoding, unit: 'ms', target: { most: 40 }, details: details(decoding) }
  }
}

function laplacian(scale: number): Float32Array {
  const random = new Random(1)
  return Float32Array.from({ length: LENGTH }, () => {
    const sign = random.uniform() < 0.5 ? -1 : 1
    return Math.round(-sign * scale * Math.log(1 - random.uniform())) + 0
  })
}

/** Milliseconds. */
function timed(run: () => void): number {
  const times = Array.from({ length: RUNS }, () => {
    const start = performance.now()
    run()
    return performance.now() - start
  })
  return median(times)
}
