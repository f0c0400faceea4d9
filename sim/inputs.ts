/** What the nodes learn from, one input at a time in the order of arrival, whichever node it arrives at. */
import type { Random } from './engine/random.js'
import { ScenarioError } from './scenario.js'
import type { Inputs, StreamName } from './streams/inputs.js'
import { withLabelNoise } from './streams/label-noise.js'
import { type RecordedStream, replay } from './streams/replay.js'
import { dense, type SyntheticOptions, sparse } from './streams/synthetic.js'

export interface InputOptions extends SyntheticOptions {
  readonly stream: StreamName
  /** Share of classes that are flipped. */
  readonly labelNoise: number
}

/**
 * The inputs of a scenario.
 * @param recorded for the stream `file`
 * @throws ScenarioError where that is missing
 */
export function createInputs(options: InputOptions, random: Random, recorded?: RecordedStream): Inputs {
  const inputs = cleanInputs(options, random, recorded)
  const { labelNoise } = options
  return labelNoise > 0 ? withLabelNoise(inputs, labelNoise, random.fork('label noise')) : inputs
}

function cleanInputs(options: InputOptions, random: Random, recorded: RecordedStream | undefined): Inputs {
  const { stream } = options
  switch (stream) {
    case 'logistic':
      return dense('logistic', options, random)
    case 'least-squares':
      return dense('linear', options, random)
    case 'sparse':
      return sparse(options, random)
    case 'file':
      if (recorded === undefined)
        throw new ScenarioError('stream file: its inputs must be read ahead: give them as data')
      return replay(recorded)
    default:
      return stream satisfies never
  }
}
