/** The speed of each text format's parser, on generated data like a9a (about 72 bytes per row). */
import type { TextFormat } from '../../src/streams/formats.js'
import { createParser } from '../../src/streams/parser.js'
import { syntheticLibsvm, syntheticRows } from './data.js'
import type { Row } from './row.js'

const ROWS = 200_000
const CHUNK_BYTES = 64 * 1024
/** Number of runs, of which the fastest counts. The first runs include compilation. */
const RUNS = 4

function generate(line: (label: number, features: number[]) => string, head = ''): Buffer {
  const lines = syntheticRows(ROWS).map(({ label, features }) => line(label, features))
  return Buffer.from(`${head}${lines.join('\n')}\n`)
}

function measure(name: string, format: TextFormat, bytes: Buffer): Row {
  let seconds = Number.POSITIVE_INFINITY
  let rows = 0
  for (let run = 0; run < RUNS; run++) {
    const parser = createParser(format, { strict: true })
    const start = performance.now()
    rows = 0
    for (let from = 0; from < bytes.length; from += CHUNK_BYTES) {
      rows += parser.push(bytes.subarray(from, from + CHUNK_BYTES)).size
    }
    rows += parser.end().size
    seconds = Math.min(seconds, (performance.now() - start) / 1000)
  }
  const details = { 'MB/s': bytes.length / seconds / 1e6 }
  return { name: `parsing alone, ${name}`, value: rows / seconds, unit: 'rows/s', details }
}

/** One case per format, on one thread. */
export function* bench(): Generator<Row> {
  yield measure('libsvm, values 1', 'libsvm', syntheticLibsvm(ROWS))
  const decimals = generate((label, features) => `${label} ${features.map(f => `${f}:${f / 64}`).join(' ')}`)
  yield measure('libsvm, decimal values', 'libsvm', decimals)
  yield measure(
    'vw, names',
    'vw',
    generate((label, features) => `${label} | ${features.map(f => `f${f}`).join(' ')}`)
  )
  const header = `label,${Array.from({ length: 14 }, (_, column) => `c${column}`).join(',')}\n`
  const csv = generate((label, features) => `${label},${features.map(f => f / 64).join(',')}`, header)
  yield measure('csv, numeric columns', 'csv', csv)
  const jsonl = generate((label, features) => JSON.stringify({ label, features: features.map(f => f / 64) }))
  yield measure('jsonl, arrays', 'jsonl', jsonl)
}
