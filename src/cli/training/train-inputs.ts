/** What a run of `admb train` starts from and reads, according to its flags and earlier runs. */

import type { RunningMoments, StreamOptions } from '../../data/index.js'
import type { Execution, LayerPlace } from '../../l2l/index.js'
import { checkFeatures } from '../../learning/index.js'
import { layersFolder } from '../../storage/index.js'
import { growingNames, type LearningSpec } from '../../task/learning-spec.js'
import { streamFor } from '../../task/stream.js'
import { moreText } from '../../task/text.js'
import { UsageError } from '../errors.js'
import { executionOf, readOptions, taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import type { EarlierRun } from './trained-store.js'
import { Validation } from './validation.js'

/** Flags of `admb train`. */
export interface TrainFlags extends Flags<'train'> {
  /** `--weights` as it was given, if `weights` is a copy. */
  readonly givenWeights?: string
}

/** The flags that describe the model. For a model with frozen weights that is continued, `--weights` only says where they are. */
export function continued(flags: TrainFlags, earlier: EarlierRun | undefined): TrainFlags {
  const { network } = earlier?.spec ?? {}
  if (network === undefined) return flags
  const isTuned = network.tuning !== undefined && flags.freeze === undefined && flags.lora === undefined
  const { kind } = network.target
  const scale = kind === 'number' ? network.target.scale : undefined
  return {
    ...flags,
    target: flags.target ?? (kind === 'next-token' ? undefined : kind),
    targetScale: flags.targetScale ?? scale,
    weights: isTuned ? undefined : flags.weights
  }
}

/** A run that starts from the weights of a linear model in a file; undefined without one. @throws UsageError */
export async function linearStart(flags: TrainFlags, stored: EarlierRun | undefined): Promise<EarlierRun | undefined> {
  if (flags.weights === undefined) return undefined
  const { linearFrom } = await import('../linear/formats.js')
  const found = linearFrom(flags.weights, taskOptions(flags))
  if (found === undefined) return undefined
  if (stored !== undefined) throw new UsageError(`${flags.dir} holds a predictor already: remove --weights`)
  if (flags.classWeights !== undefined) {
    throw new UsageError('--weights of a linear model brings its class weights: remove --class-weights')
  }
  const { spec, predictor, scaling } = found
  const { parameters, average, state } = predictor
  const moments = spec.features.scale === 'standard' ? scaling.moments.save() : undefined
  const trained = { parameters, average, state, updates: 0, dimension: spec.dimension }
  return { spec, trained, progress: { inputs: 0, surplus: 0, loss: 0, moments } }
}

/** How the network is executed: by default, its weights stay where they are. @throws UsageError if the flags do not go together */
export function storedExecution(flags: TrainFlags, stored: EarlierRun | undefined): Execution {
  const { store = stored?.place && 'disk', hostMemory, holdout, validation } = flags
  checkFeatures({
    layersOnDisk: store === 'disk',
    validation: holdout !== undefined || validation !== undefined,
    patience: flags.patience !== undefined
  })
  return { ...executionOf(flags), store, hostMemory }
}

/** The layer file of a run, unless it is temporary. @throws UsageError if the directory cannot have one */
export function layerPlace(
  { store }: Execution,
  dir: string | undefined,
  stored: EarlierRun | undefined
): LayerPlace | undefined {
  if (store !== 'disk' || dir === undefined) return undefined
  if (stored?.spec.sums === 'lattice') {
    throw new UsageError(`${dir} is of peers with integer sums: remove --store disk, or train in another --dir`)
  }
  return stored?.place ?? { folder: layersFolder(dir) }
}

/** The rows that are learned. With validation, passes are read one by one. */
export function learned(given: StreamOptions, { holdout, validation }: TrainFlags): StreamOptions {
  if (holdout === undefined) return validation === undefined ? given : { ...given, passes: 1 }
  return { ...given, passes: 1, holdout: { every: holdout, part: 'learn' } }
}

/** @throws UsageError if the flags do not go together */
export function validationFor(
  flags: TrainFlags,
  given: StreamOptions,
  isOpen: boolean,
  moments: RunningMoments
): Validation | undefined {
  const { holdout, validation: file, patience = 3, predictWith = 'average' } = flags
  if (holdout === undefined && file === undefined) {
    return undefined
  }
  if (holdout !== undefined && file !== undefined) throw new UsageError('give either --holdout or --validation')
  if (given.data === '-' && (holdout !== undefined || (flags.passes ?? 1) > 1)) {
    throw new UsageError('standard input can be read only once: give --validation FILE and one pass')
  }
  const { shuffleWindow: _window, ...rows } = given
  const streamOf = async (spec: LearningSpec): Promise<StreamOptions> => {
    if (holdout !== undefined) return { ...rows, passes: 1, holdout: { every: holdout, part: 'validate' } }
    const { data, format, labels, label, strict } = readOptions({ ...flags, data: file })
    const { dimension, ...stream } = streamFor(spec, { data, format, labels, label, strict })
    const tokens = spec.network && (await moreText(spec.network, { ...readOptions(flags), data: file }, true))
    // A model that grows with its data may meet features that it has not seen.
    return { ...stream, ...(isOpen ? {} : { dimension }), ...(tokens && { tokens }) }
  }
  return new Validation({ streamFor: streamOf, execution: executionOf(flags), predictWith, patience, moments })
}

/** Further inputs for the model of an earlier run. */
export async function sourceOf(spec: LearningSpec, flags: TrainFlags): Promise<StreamOptions> {
  const options = readOptions(flags)
  const tokens = spec.network && (await moreText(spec.network, options, true))
  const newClasses = growingNames(spec) !== undefined
  return { ...streamFor(spec, options), passes: flags.passes, tokens, newClasses }
}

/** Parts of the spec that options were given for; the others are those of the earlier run. */
export function givenFields({
  model,
  weights,
  rule,
  average,
  batch,
  l2,
  classWeights
}: TrainFlags): (keyof LearningSpec)[] {
  const given = {
    model: model ?? weights,
    network: model ?? weights,
    rule,
    averaging: average,
    batch,
    l2,
    classWeights
  }
  return (Object.keys(given) as (keyof typeof given)[]).filter(field => given[field] !== undefined)
}
