/**
 * How fast text becomes batches: LIBSVM alone and through `openStream`, and the other text formats, on generated data
 * shaped like a9a (about 14 one-hot features a row of 123, 72 bytes a row).
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { openStream } from '../../src/streams/open.js'
import type { ParserOptions, TextFormat } from '../../src/streams/options.js'
import { createParser } from '../../src/streams/parser.js'
import { Random } from '../../src/streams/random.js'

const ROWS = 200_000
const CHUNK_BYTES = 64 * 1024
/** The best of so many runs counts: the first ones also compile. */
const RUNS = 4

interface Result {
  readonly name: string
  readonly rows: number
  readonly bytes: number
  readonly seconds: number
  readonly rowsPerSecond: number
}

/** One row's label and feature numbers, 14 of 123 in ascending order. */
function draw(random: Random): { label: number; features: number[] } {
  const features = Array.from({ length: 14 }, (_, group) => 1 + 9 * group - (group >> 1) + random.below(8))
  return { label: random.below(4) === 0 ? 1 : -1, features: features.map(feature => Math.min(feature, 123)) }
}

function generate(line: (label: number, features: number[]) => string, head = ''): Buffer {
  const random = new Random(1)
  const lines = Array.from({ length: ROWS }, () => {
    const { label, features } = draw(random)
    return line(label, features)
  })
  return Buffer.from(`${head}${lines.join('\n')}\n`)
}

function measureParser(name: string, format: TextFormat, bytes: Buffer, options: ParserOptions = {}): Result {
  let seconds = Number.POSITIVE_INFINITY
  let rows = 0
  for (let run = 0; run < RUNS; run++) {
    const parser = createParser(format, { strict: true, ...options })
    const start = performance.now()
    rows = 0
    for (let from = 0; from < bytes.length; from += CHUNK_BYTES) {
      rows += parser.push(bytes.subarray(from, from + CHUNK_BYTES)).size
    }
    rows += parser.end().size
    seconds = Math.min(seconds, (performance.now() - start) / 1000)
  }
  return { name, rows, bytes: bytes.length, seconds, rowsPerSecond: rows / seconds }
}

async function measureFile(name: string, bytes: Buffer): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'admb-bench-'))
  try {
    const data = join(directory, 'a.libsvm')
    await writeFile(data, bytes)
    let seconds = Number.POSITIVE_INFINITY
    let rows = 0
    for (let run = 0; run < RUNS; run++) {
      const start = performance.now()
      rows = 0
      for await (const batch of await openStream({ data, strict: true, constant: true })) rows += batch.size
      seconds = Math.min(seconds, (performance.now() - start) / 1000)
    }
    return { name, rows, bytes: bytes.length, seconds, rowsPerSecond: rows / seconds }
  } finally {
    await rm(directory, { recursive: true })
  }
}

/** Measures each case; sizes in bytes, times in seconds of one thread. */
export async function bench(): Promise<object[]> {
  const libsvm = generate((label, features) => `${label > 0 ? '+1' : '-1'} ${features.map(f => `${f}:1`).join(' ')} `)
  const decimals = generate((label, features) => `${label} ${features.map(f => `${f}:${f / 64}`).join(' ')}`)
  const vw = generate((label, features) => `${label} | ${features.map(f => `f${f}`).join(' ')}`)
  const header = `label,${Array.from({ length: 14 }, (_, column) => `c${column}`).join(',')}\n`
  const csv = generate((label, features) => `${label},${features.map(f => f / 64).join(',')}`, header)
  const jsonl = generate((label, features) => JSON.stringify({ label, features: features.map(f => f / 64) }))
  return [
    measureParser('libsvm, values 1', 'libsvm', libsvm),
    await measureFile('libsvm, values 1, from a file', libsvm),
    measureParser('libsvm, decimal values', 'libsvm', decimals),
    measureParser('vw, names', 'vw', vw),
    measureParser('csv, numeric columns', 'csv', csv),
    measureParser('jsonl, arrays', 'jsonl', jsonl)
  ]
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const result of await bench()) console.log(JSON.stringify(result))
}
