/** Data and models for benchmarks: public data, which are not part of the repository, synthetic rows, and small networks. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { RecordedStream } from '../../sim/index.js'
import { Random } from '../../src/data/random.js'
import { learningParts } from '../../src/task/learning-parts.js'
import type { TaskOptions } from '../../src/task/options.js'
import { createPeerTask } from '../../src/task/task.js'

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
