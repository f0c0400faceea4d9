/** The scaling of a peer's numbers: measured once, from the first rows, so that all peers of the network scale by the same constants. */
import { Layout, openStream, RunningMoments, type StreamOptions } from '../streams/index.js'
import type { LearningSpec } from './learning-spec.js'
import type { Task } from './task.js'

/** Rows that determine the scaling of numbers. */
export const MEASURED_ROWS = 10_000

type MeasuredTask = Pick<Task, 'stream' | 'plugins' | 'coverage'> & { readonly spec: LearningSpec }

/**
 * The task with mean and deviation in the schema, instead of moments of the rows before. A task without a table, or whose data can be
 * read only once, stays as it is.
 * @throws errors of the stream
 */
export async function measured(task: MeasuredTask): Promise<MeasuredTask> {
  const { stream, spec } = task
  const { columns: given, scale, hashBits, constant } = spec.features
  if (stream === undefined || stream.data === '-' || given === undefined || scale !== 'standard') return task
  const moments = await momentsOf(stream)
  const layout = new Layout(given, hashBits)
  const columns = given.map((column, index) => {
    if ((column.kind !== 'number' && column.kind !== 'lag') || column.role !== undefined) return column
    if (column.mean !== undefined) return column
    const { mean, deviation } = moments.of(layout.columns[index].feature + Number(constant)) ?? {
      mean: 0,
      deviation: 1
    }
    return { ...column, mean, deviation: deviation || 1 }
  })
  const features = { ...spec.features, columns, scale: 'none' as const }
  return { ...task, stream: { ...stream, schema: columns, scale: 'none' }, spec: { ...spec, features } }
}

/** The moments of the numbers in the first rows. */
async function momentsOf({ shuffleWindow: _order, ...ordered }: StreamOptions): Promise<RunningMoments> {
  const moments = new RunningMoments()
  const stream = await openStream({
    ...ordered,
    passes: 1,
    maxRows: MEASURED_ROWS,
    scale: 'none',
    onMalformed: () => undefined
  })
  for await (const { size, offsets, indices, values, numeric } of stream) {
    for (let row = 0; row < size; row++) {
      const from = offsets[row]
      for (let i = from; i < from + numeric[row]; i++) moments.count(indices[i], values[i])
    }
  }
  return moments
}
