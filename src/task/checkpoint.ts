/** Tasks that start from a checkpoint: its model, its text, and its place in the learning spec. */
import { OptionError } from '../learner/index.js'
import type { NetworkSpec, TextSpec } from '../nn/spec/network-spec.js'
import type { Checkpoint } from '../nn/weights/checkpoint.js'
import type { Coverage } from '../nn/weights/exchange.js'
import type { TaskModel } from './model.js'
import type { TaskOptions } from './options.js'

/** What a checkpoint says of its texts. */
export interface KnownText extends Partial<TextSpec> {
  /** Number of tokens of the model; a tokenizer may have fewer. */
  readonly vocabulary: number
  /** Largest length of a row. */
  readonly positions: number
  readonly target?: NetworkSpec['target']['kind']
  /** Number of classes, if the model has been trained with some. */
  readonly classes?: number
  /** For messages. */
  readonly source: string
}

export interface Start {
  readonly model: TaskModel
  /** Undefined if the checkpoint does not read text. */
  readonly text: KnownText | undefined
  coverage(network: NetworkSpec): Promise<Coverage>
  /** The spec of a network that starts from the weights. */
  begin<Spec extends { readonly network?: NetworkSpec }>(spec: Spec): Spec
}

/** @throws ModelError; OptionError for options that describe another model */
export async function startFrom(path: string, { model }: TaskOptions): Promise<Start> {
  if (model !== undefined) throw new OptionError('--weights brings its own model: leave --model out')
  const { coverageOf, openCheckpoint, weightsDigest } = await import('../nn/weights/checkpoint.js')
  const checkpoint = openCheckpoint(path)
  const weights = weightsDigest(checkpoint)
  const { layers, layout, tensors } = checkpoint
  return {
    model: { kind: 'network', layers },
    text: textOf(checkpoint, path),
    async coverage(network) {
      const { networkModel } = await import('../l2l/index.js')
      return coverageOf(networkModel(network), tensors, layout)
    },
    begin: spec => ({ ...spec, network: spec.network && { ...spec.network, weights } })
  }
}

function textOf({ network, foreign, tokenizer }: Checkpoint, source: string): KnownText | undefined {
  if (foreign !== undefined) {
    const { text, classNames, classes, vocabulary, positions, target } = foreign
    return { ...text, pieces: tokenizer, classNames, classes, vocabulary, positions, target, source }
  }
  if (network?.sample.kind !== 'tokens') return undefined
  const { sample, target, text } = network
  return { ...text, vocabulary: sample.vocabulary, positions: sample.shape[0], target: target.kind, source }
}
