/** `admb train`: its loss on public data and its speed as a process; and the speed of reading and of learning separately. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { collect, openStream } from '../../src/data/index.js'
import { SerialTrainer } from '../../src/learning/index.js'
import { publicData, syntheticLibsvm } from './data.js'
import { runAdmb } from './processes.js'
import { median, type Row } from './row.js'

/** Copies of a9a for the measurement of speed: 70 MB of text. */
const COPIES = 30
const A9A_ROWS = 32_561
const RUNS = 7

interface Trained {
  readonly averageLoss: number
  readonly accuracy: number
  readonly inputsPerSecond: number
}

export async function* bench(): AsyncGenerator<Row> {
  const scratch = await mkdtemp(join(tmpdir(), 'admb-bench-'))
  try {
    const a9a = publicData('a9a.libsvm.gz')
    if (a9a) yield await a9aLoss(a9a)
    const text = a9a ? gunzipSync(await readFile(a9a)) : syntheticLibsvm(A9A_ROWS)
    const copies = join(scratch, 'copies.libsvm')
    await writeFile(copies, Buffer.concat(Array.from({ length: COPIES }, () => text)))
    yield* speed(`${COPIES} copies of ${a9a ? 'a9a' : 'generated rows like a9a'}`, copies)
    yield* mnist(join(scratch, 'mnist'))
    yield* elec2()
  } finally {
    await rm(scratch, { recursive: true })
  }
}

async function a9aLoss(data: string): Promise<Row> {
  const { averageLoss, accuracy } = await runAdmb<Trained>(['train', '--data', data])
  const name = 'a9a, one pass: progressive loss (VW 9.11: 0.3322)'
  return { name, value: averageLoss, unit: 'nats', target: { max: 0.333 }, details: { accuracy } }
}

/** Where the threads of a process run, with the minimum speed in inputs per second. */
const PLACES = [
  { where: 'all threads on one core', pin: ['taskset', '-c', '0'], min: 3e6 },
  { where: 'threads on two cores', pin: ['taskset', '-c', '0,1'], min: 5e6 },
  { where: 'threads on any core', pin: [], min: 5e6 }
]

/** The same run in every place, alternately. Without `taskset`, threads are not pinned. */
async function* speed(what: string, data: string): AsyncGenerator<Row> {
  const canPin = spawnSync('taskset', ['--version']).status === 0
  const places = PLACES.filter(({ pin }) => canPin || pin.length === 0).map(place => ({
    ...place,
    runs: [] as (Trained & { memory: number })[]
  }))
  for (let run = 0; run < RUNS; run++) {
    for (const { runs, pin } of places) runs.push(await runAdmb<Trained>(['train', '--data', data], pin))
  }
  for (const { where, min, runs } of places) {
    const rates = runs.map(({ inputsPerSecond }) => inputsPerSecond)
    const losses = [...new Set(places.flatMap(({ runs }) => runs.map(({ averageLoss }) => averageLoss)))]
    const details = { min: Math.min(...rates), max: Math.max(...rates), losses }
    yield { name: `${what}: ${where}`, value: median(rates), unit: 'inputs/s', target: { min }, details }
  }
  const memory = Math.max(...places.flatMap(({ runs }) => runs.map(run => run.memory)))
  yield { name: `${what}: peak memory`, value: memory, unit: 'MB', target: { max: 200 } }
  yield* apart(what, data)
}

/** Reading without learning, and learning the same rows without reading, both after compilation. */
async function* apart(what: string, data: string): AsyncGenerator<Row> {
  const reading: number[] = []
  const learning: number[] = []
  const rows = await collect(await openStream({ data, constant: true }), A9A_ROWS)
  for (let run = 0; run < RUNS; run++) {
    const start = performance.now()
    let inputs = 0
    for await (const { size } of await openStream({ data, constant: true })) inputs += size
    const middle = performance.now()
    const trainer = new SerialTrainer({ model: 'logistic' })
    for (let copy = 0; copy < COPIES; copy++) trainer.learn(rows)
    const end = performance.now()
    reading.push((inputs / (middle - start)) * 1000)
    learning.push(((COPIES * rows.size) / (end - middle)) * 1000)
  }
  yield { name: `${what}: reading alone`, value: median(reading), unit: 'inputs/s' }
  yield { name: `${what}: learning alone`, value: median(learning), unit: 'inputs/s' }
}

async function* mnist(dir: string): AsyncGenerator<Row> {
  const images = publicData('mnist/train-images-idx3-ubyte.gz')
  const test = publicData('mnist/t10k-images-idx3-ubyte.gz')
  if (!images || !test) return
  const trained = await runAdmb<Trained>(['train', '--data', images, '--passes', '3', '--dir', dir])
  const { accuracy } = await runAdmb<{ accuracy: number }>(['eval', '--dir', dir, '--data', test])
  const { averageLoss, inputsPerSecond } = trained
  const details = { averageLoss, inputsPerSecond }
  const name = 'MNIST softmax, three passes: test accuracy'
  yield { name, value: 100 * accuracy, unit: '%', target: { min: 91.5 }, details }
}

async function* elec2(): AsyncGenerator<Row> {
  const data = publicData('elec2.csv.gz')
  if (!data) return
  const flags = ['--label', 'class', '--scale', 'standard', '--predict-with', 'current']
  const { accuracy, averageLoss } = await runAdmb<Trained>(['train', '--data', data, ...flags])
  const name = 'elec2, served by the newest predictor: progressive accuracy'
  yield { name, value: 100 * accuracy, unit: '%', target: { min: 78 }, details: { averageLoss } }
}
