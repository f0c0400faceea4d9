/** `admb schema`: prints what the columns and the label of data mean, for review and for the option `--schema`. */
import type { Command } from 'commander'
import { stringify } from 'yaml'
import { Notices } from '../../base/errors.js'
import { openStream, type Schema } from '../../data/index.js'
import { MEASURED_ROWS, momentsOf, scaledColumns } from '../../task/measured.js'
import { weightsByClass } from '../../task/option-values.js'
import { noData } from '../../task/stream.js'
import { createTask } from '../../task/task.js'
import { add } from '../options/command.js'
import { taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { print, printJson, warn } from '../output/output.js'

export function schemaCommand(program: Command): Command {
  return add(
    program,
    'schema',
    {
      help: `Infers the schema from the first rows. Review it, change what is wrong, and
give it to all peers, which then read their data as the same features.

Examples:
  admb schema --data sales.csv --label bought > sales.yaml
  admb peer --data sales.csv --schema sales.yaml`
    },
    schema
  )
}

async function schema(flags: Flags<'schema'>): Promise<void> {
  const { stream: source, schema: given, specFor } = await createTask(taskOptions(flags), 'serial')
  if (source === undefined) throw noData()
  const notices = new Notices(warn)
  const { shuffleWindow: _shuffleWindow, ...ordered } = source
  const stream = await openStream({
    ...ordered,
    passes: 1,
    maxRows: MEASURED_ROWS,
    scaleLater: true,
    onNotice: notices.add
  })
  const { classWeights, classes, features } = specFor(stream)
  const { hashBits } = stream
  const moments = await momentsOf(stream)
  notices.show()
  const { summary } = stream
  const inferred = stream.label ?? given.label
  const { classNames } = features
  const weights = weightsByClass(classWeights?.slice(0, classNames?.length), classNames)
  const label = inferred && { ...inferred, classes, ...weights }
  const columns =
    stream.schema &&
    (flags.scale === 'none' ? stream.schema : scaledColumns(stream.schema, hashBits, moments, features.constant))
  const found: Schema = {
    label,
    columns,
    hashBits
  }
  if (flags.json) printJson({ command: 'schema', notices: notices.lines, schema: found, summary })
  else print(`# ${summary ?? 'the data determine no schema'}\n${stringify(found, { lineWidth: 100 })}`.trimEnd())
}
