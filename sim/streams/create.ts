/** Creates the inputs of a scenario, in the order of their arrival at the nodes. */
import type { Random } from '../engine/random.js'
import { ScenarioError } from '../scenario.js'
import type { Inputs, StreamName } from './inputs.js'
import { type RecordedStream, replay } from './replay.js'
import { dense, type SyntheticOptions, sparse } from './synthetic.js'

export interface InputOptions extends SyntheticOptions {
  readonly stream: StreamName
  /** Share of inputs whose class is replaced by another one. */
  readonly labelNoise: number
}

/**
 * @param recorded the data of the stream `file`
 * @throws ScenarioError if the data is missing
 */
export function createInputs(options: InputOptions, random: Random, recorded?: RecordedStream): Inputs {
  const inputs = createStream(options, random, recorded)
  const { labelNoise } = options
  return labelNoise > 0 ? withLabelNoise(inputs, labelNoise, random.fork('label noise')) : inputs
}

function createStream(options: InputOptions, random: Random, recorded: RecordedStream | undefined): Inputs {
  const { stream } = options
  switch (stream) {
    case 'logistic':
      return dense('logistic', options, random)
    case 'least-squares':
      return dense('linear', options, random)
    case 'sparse':
      return sparse(options, random)
    case 'file':
      if (recorded === undefined) {
        throw new ScenarioError('stream file: no data; pass the recorded stream as the option data of simulate')
      }
      return replay(recorded)
    default:
      return stream satisfies never
  }
}

/** Replaces a share of the classes by another class. The optimum of the noisy stream is then unknown. */
function withLabelNoise(inputs: Inputs, share: number, random: Random): Inputs {
  const { classes = 2 } = inputs
  return {
    ...inputs,
    optimum: undefined,
    next() {
      const row = inputs.next()
      if (random.next() < share) row.labels[0] = (row.labels[0] + 1 + random.below(classes - 1)) % classes
      return row
    }
  }
}
