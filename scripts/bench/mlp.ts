/** Networks with one hidden layer, for benchmarks in the simulator. */
import type { RecordedStream } from '../../sim/index.js'
import { learningParts } from '../../src/task/learning-spec.js'
import type { TaskOptions } from '../../src/task/options.js'
import { createPeerTask } from '../../src/task/task.js'

/** Adam, on `cpu`. @param hidden number of units @param step that of the rule */
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
