/** The scaling of a table's numbers: measured once, from the first rows, so that all peers of a network scale by the same constants. */
import {
  type ColumnSchema,
  EPOCH_DAYS,
  Layout,
  openStream,
  type Rows,
  RunningMoments,
  resolveScale,
  type StreamOptions,
  YEARS_10
} from '../data/index.js'
import type { LearningSpec } from './learning-spec.js'
import type { Task } from './task.js'

/** Rows that determine the scaling of numbers. */
export const MEASURED_ROWS = 10_000

type MeasuredTask = Pick<Task, 'stream' | 'plugins' | 'coverage'> & { readonly spec: LearningSpec }

/**
 * The task with means and deviations in the schema, instead of moments of the rows before. A task without a table, or whose data can be
 * read only once, stays as it is.
 * @param stdin a sample of standard input @default none
 * @throws errors of the stream
 */
export async function measured(task: MeasuredTask, stdin?: StreamOptions['stdin']): Promise<MeasuredTask> {
  const { stream, spec } = task
  const { columns: given, scale, hashBits, constant } = spec.features
  if (
    stream === undefined ||
    (stream.data === '-' && stdin === undefined) ||
    given === undefined ||
    scale !== 'standard'
  )
    return task
  const { shuffleWindow: _order, ...ordered } = stream
  const reading = { ...ordered, ...(stdin && { stdin }), onMalformed: () => undefined }
  const sample = { ...reading, passes: 1, maxRows: MEASURED_ROWS, scaleLater: true }
  const found = scaledColumns(given, hashBits, await momentsOf(await openStream(sample)), constant)
  // A number without any value yet.
  const schema = found.map(column =>
    column.kind === 'number' && column.role === undefined && column.mean === undefined
      ? { ...column, mean: column.origin ?? 0, deviation: 1 }
      : column
  )
  const features = { ...spec.features, columns: schema, scale: resolveScale('auto', schema) }
  return { ...task, stream: { ...stream, schema, scale: features.scale }, spec: { ...spec, features } }
}

/** The moments of the numbers in rows that are not scaled. */
export async function momentsOf(stream: AsyncIterable<Rows>): Promise<RunningMoments> {
  const moments = new RunningMoments()
  for await (const { size, offsets, indices, values, numeric } of stream) {
    for (let row = 0; row < size; row++) {
      const from = offsets[row]
      for (let i = from; i < from + numeric[row]; i++) moments.count(indices[i], values[i])
    }
  }
  return moments
}

/**
 * The columns with mean and deviation of each number and of the days of each time, rounded to what matters.
 * @param moments of the rows
 */
export function scaledColumns(
  columns: readonly ColumnSchema[],
  hashBits: number | undefined,
  moments: RunningMoments,
  constant: boolean
): readonly ColumnSchema[] {
  const features = new Map(new Layout(columns, hashBits).columns.map(({ name, feature }) => [name, feature]))
  return columns.map(column => {
    const { kind, role, origin, ...rest } = column
    const found = moments.of((features.get(column.name) ?? -1) + Number(constant))
    const isScaled = ['number', 'time'].includes(kind) && role === undefined && column.mean === undefined
    if (!isScaled || found === undefined) return column
    const [from, unit] = kind === 'time' ? [origin ?? EPOCH_DAYS, YEARS_10] : [origin ?? 0, 1]
    const deviation = Number((unit * found.deviation || 1).toPrecision(6))
    const mean = from + unit * found.mean
    // The mean is exact to some millionths of the deviation.
    const digits = Math.ceil(Math.log10(Math.max(1, Math.abs(mean) / deviation)))
    // −0 is written as 0.
    return { ...rest, kind, mean: Number(mean.toPrecision(Math.min(17, 6 + digits))) + 0, deviation }
  })
}
