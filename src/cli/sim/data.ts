/** The file of a scenario's stream, read ahead: the simulator itself reads nothing. */
import type { RecordedStream, Scenario } from '../../../sim/index.js'
import { featuresOf } from '../../learner/index.js'
import { FORMATS, type Format } from '../../streams/index.js'
import { UsageError } from '../errors.js'
import { openLearning } from '../training/learning.js'
import { Recorder } from '../training/recorder.js'

/**
 * The first inputs of the file, as many as the scenario has at most; undefined for other streams.
 * @throws UsageError, errors of the stream
 */
export async function readData(scenario: Scenario): Promise<RecordedStream | undefined> {
  const { stream: name, data, format, label, model, classes, scale = 'none', hashBits, inputs } = scenario
  if (name !== 'file' || data === undefined) return undefined
  if (format !== undefined && !FORMATS.includes(format as Format)) {
    throw new UsageError(`format: there is no ${format}; there are ${FORMATS.join(', ')}`)
  }
  const flags = {
    data,
    format: format as Format,
    label,
    model,
    classes,
    scale,
    hashBits,
    constant: true,
    limit: inputs
  }
  const { stream, options } = await openLearning(flags)
  const recorder = new Recorder(data)
  for await (const rows of stream) recorder.append(rows)
  const { examples } = recorder
  if (examples.size === 0) throw new UsageError(`data: ${data} has no inputs: give another file`)
  return {
    model: options.model,
    classes: options.classes,
    dimension: stream.dimension ?? featuresOf(examples),
    examples
  }
}
