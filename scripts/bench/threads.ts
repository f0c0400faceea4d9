/**
 * One thread that reads and learns beside two: time, and CPU time of each thread after its start, from which the ratio on free cores follows. Then
 * the CPU time of a row in each text format. CPU times of threads are those of Linux; elsewhere they are times.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { createParser } from '../../src/data/formats/parser.js'
import { openStream } from '../../src/data/open.js'
import { Random } from '../../src/data/random.js'
import { openThreaded } from '../../src/data/threads/open-in-thread.js'
import { SerialTrainer } from '../../src/learning/index.js'
import { publicData, syntheticLibsvm } from './data.js'
import { median, type Row } from './row.js'
import { threadTimes } from './thread-times.js'

const COPIES = 30
const RUNS = 7
const NUMBERS = 14
const TABLE_ROWS = 100_000
const CHUNK = 1 << 16

export async function* bench(): AsyncGenerator<Row> {
  const scratch = await mkdtemp(join(tmpdir(), 'admb-bench-'))
  try {
    const a9a = publicData('a9a.libsvm.gz')
    const text = a9a ? gunzipSync(await readFile(a9a)) : syntheticLibsvm(32_561)
    const data = join(scratch, 'copies.libsvm')
    await writeFile(data, Buffer.concat(Array(COPIES).fill(text)))
    yield* threads(`${COPIES} copies of ${a9a ? 'a9a' : 'generated rows like a9a'}`, data)
    yield* parsers(scratch)
  } finally {
    await rm(scratch, { recursive: true })
  }
}

interface Run {
  readonly wall: number
  readonly learner: number
  /** 0 with one thread. */
  readonly reader: number
}

async function* threads(what: string, data: string): AsyncGenerator<Row> {
  const runs: Record<'one' | 'two', Run[]> = { one: [], two: [] }
  for (let run = 0; run < RUNS; run++) {
    runs.one.push(await timed(data, openStream))
    runs.two.push(await timed(data, openThreaded))
  }
  const of = (count: 'one' | 'two', key: keyof Run) => median(runs[count].map(run => run[key]))
  const [learner, reader] = [of('two', 'learner'), of('two', 'reader')]
  const target = { min: 1.5 }
  yield {
    name: `${what}: time of one thread over that of two`,
    value: of('one', 'wall') / of('two', 'wall'),
    unit: '×',
    target,
    details: { one: runs.one.map(({ wall }) => wall), two: runs.two.map(({ wall }) => wall) }
  }
  yield {
    name: `${what}: the same, as CPU times of the threads imply on free cores`,
    value: of('one', 'learner') / Math.max(learner, reader),
    unit: '×',
    target,
    details: { one: of('one', 'learner'), learner, reader }
  }
}

/** Reads and learns all rows. Seconds. */
async function timed(data: string, open: typeof openStream): Promise<Run> {
  const before = threadTimes()
  const startedAt = performance.now()
  const stream = await open({ data, constant: true })
  const trainer = new SerialTrainer({ model: 'logistic' })
  const others = () => Math.max(0, ...[...threadTimes()].map(([id, time]) => (before.has(id) ? 0 : time)))
  // The start of the thread.
  const start = others()
  let reader = 0
  let isSampled = false
  for await (const rows of stream) {
    trainer.learn(rows)
    // The thread ends before the stream does.
    const share = stream.share ?? 0
    if (share > 0.9 && !isSampled) {
      reader = (others() - start) / share
      isSampled = true
    }
  }
  const wall = (performance.now() - startedAt) / 1000
  const learner = (threadTimes().get(process.pid) ?? 0) - (before.get(process.pid) ?? 0)
  return { wall, learner, reader }
}

/** Texts with 14 numbers a row. */
async function* parsers(scratch: string): AsyncGenerator<Row> {
  const random = new Random(1)
  const names = Array.from({ length: NUMBERS }, (_, i) => `x${i}`)
  const rows = Array.from({ length: TABLE_ROWS }, () => ({
    numbers: names.map(() => random.below(100_000) / 1000),
    label: random.below(2)
  }))
  const csv = [[...names, 'label'], ...rows.map(({ numbers, label }) => [...numbers, label])].map(row => row.join())
  const objects = (count: number) =>
    rows.map(({ numbers, label }) =>
      JSON.stringify({ ...Object.fromEntries(names.slice(0, count).map((name, i) => [name, numbers[i]])), label })
    )
  const texts = [
    { name: 'CSV, 14 numbers', format: 'csv', lines: csv, min: 4 },
    { name: 'JSON lines, 14 numbers', format: 'jsonl', lines: objects(NUMBERS), min: 2 },
    { name: 'JSON lines, 6 numbers', format: 'jsonl', lines: objects(6), min: 2 }
  ] as const
  for (const { name, format, lines, min } of texts) {
    const data = join(scratch, `rows.${format}`)
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    await writeFile(data, bytes)
    const { schema } = await openStream({ data })
    const times: number[] = []
    for (let run = 0; run < RUNS; run++) {
      const parser = createParser(format, { constant: true, classes: 2, schema })
      const before = threadTimes().get(process.pid) ?? 0
      for (let from = 0; from < bytes.length; from += CHUNK) parser.push(bytes.subarray(from, from + CHUNK))
      times.push(((threadTimes().get(process.pid) ?? 0) - before) / TABLE_ROWS)
    }
    const details = { nanoseconds: times.map(time => 1e9 * time) }
    yield {
      name: `${name}: rows a second of CPU time`,
      value: 1e-6 / median(times),
      unit: 'million',
      target: { min },
      details
    }
  }
}
