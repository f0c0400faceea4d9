/** Tasks that start from a checkpoint: its model, its text, its inputs, and its place in the learning spec. */
import type { PredictorId } from '../admb/index.js'
import type { SavedMoments, Schema } from '../data/index.js'
import { OptionError } from '../learning/index.js'
import { loraOf, type NetworkSpec, type TextSpec, type TuningSpec } from '../nn/spec/network-spec.js'
import type { Checkpoint } from '../nn/weights/checkpoint.js'
import type { Coverage } from '../nn/weights/exchange.js'
import { type LearningSpec, schemaOf } from './learning-spec.js'
import type { TaskModel, TaskOptions } from './options.js'
import { columnsOf } from './predictor-metadata.js'
import { parseSpec } from './spec-text.js'

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

/** Tasks that start from a checkpoint: its model, its text, and its place in the learning spec. */
interface Start {
  readonly model: TaskModel
  /** Undefined if the checkpoint does not read text. */
  readonly text: KnownText | undefined
  /** Undefined if the checkpoint does not say how its inputs are read, or reads text. */
  readonly inputs: StartingInputs | undefined
  coverage(network: NetworkSpec): Coverage
  /** The spec of a network that starts from the weights. */
  begin<Spec extends { readonly network?: NetworkSpec }>(spec: Spec): Spec
}

/** @throws ModelError; OptionError for options that describe another model */
export async function startFrom(path: string, { model, freeze, lora }: TaskOptions): Promise<Start> {
  if (model !== undefined) throw new OptionError('--weights brings its own model: remove --model')
  const [{ coverageOf, openCheckpoint, weightsDigest }, { networkModel }] = await Promise.all([
    import('../nn/weights/checkpoint.js'),
    import('../l2l/index.js')
  ])
  const checkpoint = openCheckpoint(path)
  const weights = weightsDigest(checkpoint)
  const own = ownCheckpoint(checkpoint)
  const { layers, layout, tensors } = checkpoint
  const coverage = (network: NetworkSpec) => coverageOf(networkModel(network), tensors, layout)
  const adapters = lora && loraOf(lora)
  const tuningOf = (network: NetworkSpec): TuningSpec | undefined => {
    if (adapters === undefined) return freeze && { freeze }
    const missing = new Set(coverage(network).missingLayers)
    const isHead = (name: string, kind: string) => missing.has(name) || (name === 'output' && kind === 'dense')
    const heads = networkModel(network).layers.filter(({ name, kind }) => isHead(name, kind))
    return { freeze, lora: adapters, heads: heads.map(({ name }) => name) }
  }
  return {
    model: { kind: 'network', layers },
    text: textOf(checkpoint, path),
    inputs: own && checkpoint.network?.text === undefined ? startingInputs(own) : undefined,
    coverage,
    begin(spec) {
      if (spec.network === undefined) return spec
      const tuning = tuningOf(spec.network)
      const network = { ...spec.network, weights, ...(tuning && { tuning }) }
      // Names of layers that do not exist are refused here.
      networkModel(network)
      return { ...spec, network }
    }
  }
}

/**
 * A checkpoint as a model that generates text, with its weights.
 * @throws ModelError; OptionError if it has no tokenizer
 */
export async function languageModel(
  path: string
): Promise<{ readonly spec: NetworkSpec; readonly blocks: readonly Float32Array[] }> {
  const [{ initialWeights, openCheckpoint }, { networkModel }] = await Promise.all([
    import('../nn/weights/checkpoint.js'),
    import('../l2l/index.js')
  ])
  const checkpoint = openCheckpoint(path)
  const { layers, network, foreign, tokenizer: pieces } = checkpoint
  const { positions, vocabulary, text } = foreign ?? {}
  const alphabet = text?.alphabet
  if (network === undefined && pieces === undefined && alphabet === undefined) {
    throw new OptionError(`${path} has no tokenizer: add its tokenizer.json`)
  }
  const spec =
    network ??
    ({
      layers,
      sample: { kind: 'tokens', shape: [positions ?? 0], vocabulary: vocabulary ?? 0 },
      target:
        foreign?.target === 'next-token' ? { kind: 'next-token' } : { kind: 'class', classes: foreign?.classes ?? 2 },
      text: { length: positions ?? 0, pieces, alphabet }
    } satisfies NetworkSpec)
  return { spec, blocks: [...initialWeights(networkModel(spec), checkpoint, 0).blocks()] }
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

/** What a checkpoint of this project says of the inputs of its network: columns, classes, and what they are scaled by. */
interface OwnCheckpoint {
  readonly spec: LearningSpec
  /** Running moments of the inputs; undefined if the spec does not scale by them. */
  readonly moments: SavedMoments | undefined
  /** Id of the predictor that was exported, if it is known. */
  readonly id: PredictorId | undefined
}

/** @returns undefined for a checkpoint of another program */
export function ownCheckpoint({ metadata }: Checkpoint): OwnCheckpoint | undefined {
  if (metadata === undefined) return undefined
  const { spec, scaling, predictor } = metadata
  return { spec: parseSpec(spec), moments: scaling && JSON.parse(scaling), id: predictor && JSON.parse(predictor) }
}

/** How the inputs of a network that starts from a checkpoint are read. */
interface StartingInputs {
  readonly schema: Schema
  readonly scale: 'none' | 'standard'
  /** Running moments of rows without columns. */
  readonly moments: SavedMoments | undefined
}

/** The inputs of a network that starts from the checkpoint. Its numbers are scaled as those that the weights have learned. */
function startingInputs({ spec, moments }: OwnCheckpoint): StartingInputs {
  const schema = schemaOf(spec)
  if (schema.columns === undefined) return { schema, scale: spec.features.scale, moments }
  const scaled = new Map(columnsOf(spec.features, moments)?.map(entry => [entry.name, entry]))
  const columns = schema.columns.map(column => {
    const { mean, deviation } = scaled.get(column.name) ?? {}
    return mean === undefined ? column : { ...column, mean, deviation }
  })
  return { schema: { ...schema, columns }, scale: 'none', moments: undefined }
}
