/** Reads the data file of a scenario with the stream `file`, since the simulator does no I/O. */
import type { RecordedStream, Scenario } from '../../../sim/index.js'
import { type Format, formatNames } from '../../data/index.js'
import { featuresOf } from '../../learning/index.js'
import { UsageError } from '../errors.js'
import type { Flags } from '../options/table.js'
import { openLearning } from '../training/learning.js'
import { Recorder } from '../training/recorder.js'

/**
 * Reads at most as many inputs as the scenario has.
 * @returns undefined for other streams
 * @throws UsageError, and errors of the parsers
 */
export async function readData(scenario: Scenario): Promise<RecordedStream | undefined> {
  const { stream: name, data, format, label, model, classes, scale, hashBits, inputs } = scenario
  if (name !== 'file' || data === undefined) return undefined
  if (format !== undefined && !formatNames.includes(format as Format)) {
    throw new UsageError(`unknown format '${format}'; expected one of ${formatNames.join(', ')}`)
  }
  return recordStream({
    data,
    format: { format: format as Format },
    label,
    model,
    classes: { classes },
    scale,
    hashBits,
    limit: inputs
  })
}

/**
 * Reads a file into memory, as the learning commands read it.
 * @throws UsageError, and errors of the parsers
 */
export async function recordStream(flags: Flags<'regret'> & { readonly data: string }): Promise<RecordedStream> {
  const { data } = flags
  const { stream, options } = await openLearning(flags)
  const recorder = new Recorder(data)
  for await (const rows of stream) recorder.append(rows)
  const { examples } = recorder
  if (examples.size === 0) throw new UsageError(`data: ${data} has no inputs`)
  return {
    model: options.model,
    classes: options.classes,
    targetScale: options.targetScale,
    dimension: stream.dimension ?? featuresOf(examples),
    examples
  }
}
