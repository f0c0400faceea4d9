/** Data and models for benchmarks: public data, which are not part of the repository, synthetic rows, and small networks. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { RecordedStream } from '../../sim/index.js'
import { recordStream } from '../../src/cli/sim/scenarios.js'
import { Random } from '../../src/data/random.js'
import type { Examples } from '../../src/learning/index.js'
import { learningParts } from '../../src/task/learning-parts.js'
import type { TaskOptions } from '../../src/task/options.js'
import { createPeerTask } from '../../src/task/task.js'
import type { SimulatedTask } from './characters.js'

/** Public data beside the repository. */
const DATA_FOLDER = new URL('../../../../shared/data/', import.meta.url)

/** The path of the file, or undefined, with a message on stderr, if it is missing. */
export function publicData(name: string): string | undefined {
  const path = fileURLToPath(new URL(name, DATA_FOLDER))
  if (existsSync(path)) return path
  process.stderr.write(`bench: skipped, because ../shared/data/${name} is missing\n`)
  return undefined
}

/** Rows like those of a9a: labels −1 and 1, and 14 of 123 feature numbers in ascending order. */
function syntheticRows(count: number): { label: number; features: number[] }[] {
  const random = new Random(1)
  return Array.from({ length: count }, () => {
    const features = Array.from({ length: 14 }, (_, group) =>
      Math.min(123, 1 + 9 * group - (group >> 1) + random.below(8))
    )
    return { label: random.below(4) === 0 ? 1 : -1, features }
  })
}

/** Synthetic rows as LIBSVM text. */
export function syntheticLibsvm(count: number): Buffer {
  const lines = syntheticRows(count).map(
    ({ label, features }) => `${label > 0 ? '+1' : '-1'} ${features.map(feature => `${feature}:1`).join(' ')} \n`
  )
  return Buffer.from(lines.join(''))
}

/** A network with one hidden layer, with Adam on `cpu`, for the simulator. @param hidden number of units @param step that of the rule */
export async function mlp(
  hidden: number,
  { dimension, classes }: RecordedStream,
  step: number,
  sums?: TaskOptions['sums']
) {
  const model = { model: 'mlp', hidden: [hidden] }
  const { spec } = await createPeerTask({ model, features: dimension, classes, rule: { name: 'adam', step }, sums })
  const { learner, recipe } = await learningParts(spec, { backend: 'cpu' })
  return { learner, recipe }
}

/** Rows of MNIST for `mlp`, drawn at random; 2,000 of its test set are held out. Undefined if its files are missing. */
export async function digitsTask(hidden: number): Promise<SimulatedTask | undefined> {
  const [path, test] = ['train', 't10k'].map(name => publicData(`mnist/${name}-images-idx3-ubyte.gz`))
  if (path === undefined || test === undefined) return undefined
  const learned = await recordStream({ constant: false, data: path, limit: 60_000 })
  const { examples: held } = await recordStream({ constant: false, data: test, limit: 2000 })
  const { learner } = await mlp(hidden, learned, 0.001)
  return {
    learner,
    inputs(rows, seed) {
      const random = new Random(seed)
      return () => {
        const drawn = Array.from({ length: rows }, () => random.below(learned.examples.size))
        return pick(learned.examples, drawn)
      }
    },
    loss(parameters) {
      const score = { loss: 0, hits: 0 }
      learner.score(parameters, held, 0, held.size, score)
      return score.loss / held.size
    }
  }
}

function pick({ labels, offsets, indices, values }: Examples, rows: readonly number[]): Examples {
  const ends = rows.map(row => offsets[row + 1] - offsets[row])
  for (let i = 1; i < ends.length; i++) ends[i] += ends[i - 1]
  const picked = {
    size: rows.length,
    labels: Float32Array.from(rows, row => labels[row]),
    offsets: Int32Array.from([0, ...ends]),
    indices: new Int32Array(ends[rows.length - 1]),
    values: new Float32Array(ends[rows.length - 1])
  }
  for (const [i, row] of rows.entries()) {
    picked.indices.set(indices.subarray(offsets[row], offsets[row + 1]), picked.offsets[i])
    picked.values.set(values.subarray(offsets[row], offsets[row + 1]), picked.offsets[i])
  }
  return picked
}
