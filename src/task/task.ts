/** From task options to what is learned (the learning spec) and what is read (the stream). The one way in for all callers. */
import type { OnNotice } from '../base/errors.js'
import { inferLabel, openStream, type SavedMoments, type Schema, type StreamOptions } from '../data/index.js'
import { OptionError } from '../learning/index.js'
import { readsText } from '../nn/spec/presets.js'
import type { Coverage } from '../nn/weights/exchange.js'
import { startFrom } from './checkpoint.js'
import { type LearningSpec, parserOptions } from './learning-spec.js'
import { classWeightsFrom, schemaFrom } from './option-files.js'
import { batchRange } from './option-values.js'
import { modelOf, type TaskModel, type TaskOptions } from './options.js'
import { loadPlugins } from './plugins.js'
import { NO_TARGET_SCALE, type OpenLearningSpec, type StreamFacts, specOf } from './spec.js'
import { labelHints, taskStream, withoutUndefined } from './stream.js'
import { textTask } from './text.js'

const NO_WEIGHTS_TO_KEEP = '--freeze and --lora keep weights that a network starts from: give them (--weights PATH)'
export interface Task {
  /** What the checkpoint lacks of the model's weights, and what it has besides them. */
  readonly coverage?: Coverage
  /** Undefined for the default model, which depends on the data. */
  readonly model: TaskModel | undefined
  /** What is read; undefined without `data`. */
  readonly stream: StreamOptions | undefined
  /** Modules of plug-ins, for threads that have to load them as well. */
  readonly plugins: readonly string[]
  /** Running moments of the inputs, of a network that starts from weights that were trained with them. */
  readonly moments?: SavedMoments
  /** The schema that was given or stored with the weights; empty without one. */
  readonly schema: Schema
  /**
   * The learning spec.
   * @param facts of the opened stream
   * @throws OptionError, ModelError
   */
  specFor(facts: StreamFacts): OpenLearningSpec
}

/**
 * @param role who learns, which determines the default batch
 * @param needsLabels otherwise texts may lack them
 * @throws OptionError, ModelError, PluginError
 */
export async function createTask(options: TaskOptions, role: 'peer' | 'serial', needsLabels = true): Promise<Task> {
  const modules = options.plugins?.map(String) ?? []
  const plugins = await loadPlugins(modules)
  const start = options.checkpoint === undefined ? undefined : await startFrom(options.checkpoint, options)
  if (start === undefined && (options.freeze ?? options.lora) !== undefined) throw new OptionError(NO_WEIGHTS_TO_KEEP)
  const model = start?.model ?? modelOf(options)
  checkOptions(options, model)
  const { inputs } = start ?? {}
  const schema = options.schema === undefined && inputs ? inputs.schema : await schemaFrom(options.schema)
  const weights = schema.label?.weights
  const given = await classWeightsFrom(options.classWeights)
  // Balanced weights of earlier runs are kept, although the rows differ.
  const classWeights = given === 'balanced' ? (weights ?? given) : (given ?? weights)
  const text =
    model?.kind === 'network' && readsText(model.layers)
      ? await textTask(options, model.layers, start?.text, needsLabels)
      : undefined
  const scale = options.scale ?? (options.schema === undefined ? inputs?.scale : undefined)
  const stream = taskStream({ ...options, scale, classWeights }, model, text?.tokens, schema)
  return {
    model,
    stream,
    plugins: modules,
    schema,
    specFor: facts => {
      const spec = specOf({ options: { ...options, scale }, role, model, text, plugins, schema, classWeights }, facts)
      return start === undefined || spec.network === undefined ? spec : start.begin(spec)
    },
    moments: inputs?.moments,
    coverage: start && text && start.coverage(text.network)
  }
}

/**
 * The task of a peer. All peers must agree on its spec, so everything must be known before the stream is read.
 * @param onNotice receives what could be wrong of what the first rows determine @default none
 * @throws OptionError, ModelError, PluginError; errors of the stream
 */
export async function createPeerTask(
  options: TaskOptions,
  onNotice?: OnNotice
): Promise<Pick<Task, 'stream' | 'plugins' | 'coverage'> & { readonly spec: LearningSpec }> {
  const { stream, plugins, coverage, specFor } = await createTask(options, 'peer')
  const spec = closed(specFor(await factsOf(stream, onNotice)))
  return { spec, stream: stream && known(stream, spec), plugins, coverage }
}

/** The stream of a peer, which must not infer anything else when it is opened again. */
function known(stream: StreamOptions, spec: LearningSpec): StreamOptions {
  const { inferLabel = false, countClasses: _counted, ...options } = stream
  if (!inferLabel) return options
  const { target, classes, classNames, schema } = parserOptions(spec)
  const { scale } = spec.features
  return withoutUndefined({
    ...options,
    scale,
    target,
    classes: classNames ? undefined : classes,
    classNames,
    schema
  })
}

/**
 * A spec with all that the stream determines.
 * @param dimension of the trained model @default the spec's
 * @param facts of the stream once it is read: some formats reveal hashing and columns only then
 * @throws OptionError if the number of features is unknown
 */
export function closed(
  { features, ...spec }: OpenLearningSpec,
  dimension = spec.dimension,
  { hashBits = features.hashBits, schema: columns = features.columns }: StreamFacts = {}
): LearningSpec {
  if (dimension !== undefined)
    return { ...spec, dimension, features: { ...features, hashBits, columns } } as LearningSpec
  throw new OptionError(
    'the number of features must be known: give features, or hashBits to hash their names (--dimension N, --hash-bits B), or a schema (--schema FILE)'
  )
}

/** What the stream knows before it is read. Standard input can be opened only once, so it stays closed, unless a sample of it is given. */
export async function factsOf(stream: StreamOptions | undefined, onNotice?: OnNotice): Promise<StreamFacts> {
  if (stream === undefined || (stream.data === '-' && stream.stdin === undefined)) return {}
  const opened = await openStream({ ...stream, onNotice })
  await opened[Symbol.asyncIterator]().return?.()
  return opened
}

/** What labels in memory determine. @throws SchemaError if they do not fit the model */
export function factsOfLabels(options: TaskOptions, labels: readonly (string | number)[]): StreamFacts {
  const texts = labels.map(String)
  const label =
    options.classNames === undefined
      ? inferLabel(texts, labelHints(options, modelOf(options)), 'the labels')
      : { kind: 'class' as const, names: options.classNames, classes: options.classNames.length }
  if (label === undefined) return {}
  const names = label.names ?? Array.from({ length: label.classes ?? 0 }, (_, index) => String(index))
  const classCounts = names.map(name => texts.filter(text => text === name).length)
  return options.classNames === undefined ? { label, classes: label.classes, classCounts } : { classCounts }
}

/** Refuses options that the model would ignore. */
function checkOptions(options: TaskOptions, model: TaskModel | undefined) {
  const { batch, l2, constant, target, targetScale, classes, classNames } = options
  const hasOwnTarget = model !== undefined && model.kind !== 'network' && model.name !== 'linear'
  if (targetScale !== undefined && hasOwnTarget) throw new OptionError(NO_TARGET_SCALE)
  if (batch !== undefined) batchRange(batch)
  if (classNames !== undefined && classes !== undefined && classNames.length !== classes) {
    throw new OptionError(`${classNames.length} class names for ${classes} classes: name every class`)
  }
  if (model?.kind === 'network') {
    if (l2) throw new OptionError('l2 is for linear models: networks take a rule with decay, such as lamb,decay=0.01')
    if (constant) throw new OptionError('networks have biases: remove the option constant')
  } else if (target === 'number' && hasOwnTarget) {
    throw new OptionError(`the model ${model.name} has its own target: for a number, give the model linear`)
  }
}
