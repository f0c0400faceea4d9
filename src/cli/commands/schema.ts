/** `admb schema`: prints what the columns and the label of data mean, for review and for the option `--schema`. */
import type { Command } from 'commander'
import { stringify } from 'yaml'
import { Notices } from '../../base/notices.js'
import {
  type ColumnSchema,
  EPOCH_DAYS,
  Layout,
  openStream,
  RunningMoments,
  type Schema,
  YEARS_10
} from '../../streams/index.js'
import { weightsByClass } from '../../task/class-weights.js'
import { noData } from '../../task/stream.js'
import { createTask } from '../../task/task.js'
import { type DataFlags, type LearningFlags, withCommon, withData, withFeatures } from '../options/options.js'
import { taskOptions } from '../options/task-options.js'
import { print, printJson, warn } from '../output/output.js'

/** Rows that determine the scaling of numbers. */
const SAMPLE_ROWS = 10_000

interface Flags extends DataFlags, LearningFlags {
  readonly json?: boolean
}

export function schemaCommand(program: Command): Command {
  const command = withFeatures(withData(program.command('schema'))).addHelpText(
    'after',
    `
Infers the schema from the first rows. Review it, change what is wrong, and
give it to all peers, which then read their data as the same features.

Examples:
  admb schema --data sales.csv --label bought > sales.yaml
  admb peer --data sales.csv --schema sales.yaml`
  )
  return withCommon(command).action(schema)
}

async function schema(flags: Flags): Promise<void> {
  const { stream: source, schema: given, specFor } = await createTask(taskOptions(flags), 'serial')
  if (source === undefined) throw noData()
  const notices = new Notices(warn)
  const { shuffleWindow: _shuffleWindow, ...ordered } = source
  const stream = await openStream({
    ...ordered,
    passes: 1,
    maxRows: SAMPLE_ROWS,
    scaleLater: true,
    onNotice: notices.add
  })
  const { classWeights, classes, features } = specFor(stream)
  const { hashBits } = stream
  const moments = new RunningMoments()
  for await (const { size, offsets, indices, values, numeric } of stream) {
    for (let row = 0; row < size; row++) {
      const from = offsets[row]
      for (let i = from; i < from + numeric[row]; i++) moments.count(indices[i], values[i])
    }
  }
  notices.show()
  const { summary } = stream
  const inferred = stream.label ?? given.label
  const { classNames } = features
  const weights = weightsByClass(classWeights?.slice(0, classNames?.length), classNames)
  const label = inferred && { ...inferred, ...(classes !== undefined && { classes }), ...weights }
  const columns =
    stream.schema &&
    (flags.scale === 'none' ? stream.schema : scaled(stream.schema, hashBits, moments, features.constant))
  const found: Schema = {
    ...(label && { label }),
    ...(columns && { columns }),
    ...(hashBits !== undefined && { hashBits })
  }
  if (flags.json) printJson({ command: 'schema', notices: notices.lines, schema: found, summary })
  else print(`# ${summary ?? 'the data determine no schema'}\n${stringify(found, { lineWidth: 100 })}`.trimEnd())
}

/** The columns with mean and deviation of each number and of the days of each time, rounded to what matters. */
function scaled(
  columns: readonly ColumnSchema[],
  hashBits: number | undefined,
  moments: RunningMoments,
  constant: boolean
): readonly ColumnSchema[] {
  const features = new Map(new Layout(columns, hashBits).columns.map(({ name, feature }) => [name, feature]))
  return columns.map(column => {
    const { kind, role, origin, ...rest } = column
    const found = moments.of((features.get(column.name) ?? -1) + Number(constant))
    const isScaled = (kind === 'number' || kind === 'time') && role === undefined && column.mean === undefined
    if (!isScaled || found === undefined) return column
    const [from, unit] = kind === 'time' ? [origin ?? EPOCH_DAYS, YEARS_10] : [origin ?? 0, 1]
    const deviation = Number((unit * found.deviation || 1).toPrecision(6))
    const mean = from + unit * found.mean
    // The mean is exact to some millionths of the deviation.
    const digits = Math.ceil(Math.log10(Math.max(1, Math.abs(mean) / deviation)))
    return { ...rest, kind, mean: Number(mean.toPrecision(Math.min(17, 6 + digits))), deviation }
  })
}
