/** From task options and what the stream knows to the learning spec that peers agree on. */

import {
  type ColumnSchema,
  type ExampleStream,
  type LabelSchema,
  Layout,
  resolveScale,
  type Schema
} from '../data/index.js'
import {
  averagingFor,
  boundsOf,
  checkFeatures,
  checkLocalSteps,
  checkSumBytes,
  customLoss,
  defaultAveraging,
  defaultNetworkRule,
  defaultRule,
  isDual,
  isLayered,
  OptionError,
  type RuleSpec,
  ruleFor,
  ruleForRows,
  type TargetScale
} from '../learning/index.js'
import type { ModelSpec } from '../nn/spec/model-spec.js'
import type { NetworkSpec, Target } from '../nn/spec/network-spec.js'
import { sampleFor } from '../nn/spec/presets.js'
import type { FeatureSpec, LearningSpec, ProgramModel, ProgramSpec } from './learning-spec.js'
import { batchRange, type ClassWeights, resolveClassWeights } from './option-values.js'
import { hasConstant, predictsNumber, type TaskModel, type TaskOptions } from './options.js'
import type { TextTask } from './text.js'

/** b of peers. A smaller batch than a frame takes to cross the network gains nothing. */
export const PEER_BATCH = 128
/** b of one learner, which profits from an update per input. */
export const SERIAL_BATCH = 1
/** b of one learner that trains a network. */
const SERIAL_NETWORK_BATCH = 32

export const NO_TARGET_SCALE = 'a target scale is for models that predict a number: remove it, or give --model linear'

/** What an opened stream knows before it is read. */
export type StreamFacts = Partial<
  Pick<
    ExampleStream,
    | 'dimension'
    | 'classes'
    | 'hashBits'
    | 'schema'
    | 'interactions'
    | 'featuresPerRow'
    | 'label'
    | 'classCounts'
    | 'scale'
  >
>

/** A learning spec whose number of features may become known only while the stream is read. */
export type OpenLearningSpec = LearningSpec extends infer Spec
  ? Spec extends LearningSpec
    ? Omit<Spec, 'dimension'> & { readonly dimension: number | undefined }
    : never
  : never

/** Options of a task after its files have been read. */
interface ResolvedOptions {
  readonly options: TaskOptions
  readonly role: 'peer' | 'serial'
  readonly model: TaskModel | undefined
  readonly text: TextTask | undefined
  readonly plugins: string | undefined
  readonly schema: Schema
  readonly classWeights: ClassWeights | undefined
}

/** What peers send each other. @throws OptionError for options that exclude each other */
function exchangeOf(
  { sums, trust, algorithm = 'admb', localSteps, localMomentum, sumBytes }: TaskOptions,
  role: 'peer' | 'serial',
  {
    batch,
    isAdaptive,
    isNetwork,
    hasRoom,
    rule
  }: {
    readonly batch: number
    readonly isAdaptive: boolean
    readonly isNetwork: boolean
    readonly hasRoom: boolean
    readonly rule: RuleSpec
  }
): Pick<LearningSpec, 'sums' | 'algorithm' | 'influence' | 'localSteps' | 'localMomentum' | 'sumBytes'> {
  const needsExact = role !== 'peer' || hasRoom
  const isLattice = (sums ?? (needsExact ? 'exact' : 'lattice')) === 'lattice'
  const isBounded = boundsOf(trust) !== undefined
  checkFeatures({
    peers: role === 'peer',
    network: isNetwork,
    adaptiveBatch: isAdaptive,
    newClasses: hasRoom,
    latticeSums: isLattice,
    boundedTrust: isBounded,
    masterAlgorithm: algorithm !== 'admb',
    localSteps: localSteps !== undefined,
    localMomentum: localMomentum !== undefined,
    sumBytes: sumBytes !== undefined,
    layerRules: isLayered(rule),
    ruleWithoutSteps: isDual(rule)
  })
  if (localSteps !== undefined) checkLocalSteps({ batch, steps: localSteps, momentum: localMomentum })
  if (sumBytes !== undefined) checkSumBytes(sumBytes)
  return {
    sums: isLattice ? 'lattice' : undefined,
    algorithm: algorithm === 'admb' ? undefined : algorithm,
    localSteps,
    // A momentum of 0 is the same as none.
    localMomentum: localMomentum || undefined,
    sumBytes,
    influence: isBounded ? 'bounded' : undefined
  }
}

/** @throws OptionError for options that exclude each other */
export function specOf(
  { options, role, model, text, plugins, schema, classWeights: given }: ResolvedOptions,
  facts: StreamFacts
): OpenLearningSpec {
  const { averaging = defaultAveraging, l2, rule } = options
  const isNetwork = model?.kind === 'network'
  const constant = hasConstant(options, model)
  const hashBits = facts.hashBits ?? options.hashBits ?? schema.hashBits
  const columns = facts.schema ?? schema.columns
  const label = facts.label ?? schema.label
  const isText = text?.network.text?.label !== undefined
  const isNumber =
    (isText ? text.network.target.kind === 'number' : predictsNumber(options, model)) ||
    (model?.kind !== 'linear' && label?.kind === 'number')
  checkLabel(label, isNumber, model)
  const dimension = facts.dimension ?? givenDimension(options, columns, hashBits, constant)
  const classNames = isNumber ? undefined : (text?.network.text?.classNames ?? options.classNames ?? label?.names)
  const known = options.classes ?? classNames?.length ?? facts.classes ?? label?.classes
  const classes = isNumber ? undefined : mostClasses(options, known, schema, model)
  // Peers scale all rows alike, by the schema of a table, and not by the rows that each has read.
  const own = role === 'peer' && columns === undefined ? undefined : facts.scale
  const scale = options.scale ?? own ?? resolveScale('auto', columns)
  const { interactions } = facts
  const table = { columns, label: labelName(options, label) }
  const features: FeatureSpec = { constant, hashBits, interactions, ...table, scale, classNames }
  const serialBatch = isNetwork ? SERIAL_NETWORK_BATCH : SERIAL_BATCH
  const { min: batch, max: batchMax } = batchRange(options.batch ?? (role === 'peer' ? PEER_BATCH : serialBatch))
  const isAdaptive = batchMax > batch
  const stepRule = rule ?? (isNetwork ? defaultNetworkRule : defaultRule)
  const isSoftmax = model === undefined || (model.kind === 'linear' && model.name === 'softmax')
  const hasRoom = isSoftmax && classNames !== undefined && (classes ?? 0) > classNames.length
  const exchange = exchangeOf(options, role, { batch, isAdaptive, isNetwork, hasRoom, rule: stepRule })
  const scaling = options.targetScale === 'none' ? undefined : (options.targetScale ?? scaleOf(label))
  // Without a label and a model, the options describe a stream for a model that exists.
  const hasClasses = !isNumber && (text === undefined || isText)
  if (!hasClasses && given !== undefined) throw new OptionError('class weights are for classes: remove them')
  const numbered = { names: classNames, count: classNames?.length ?? classes ?? 2, counts: facts.classCounts }
  const named = given && resolveClassWeights(given, numbered)
  // Classes that are added later have weight 1.
  const classWeights = named && Array.from({ length: classes ?? 2 }, (_, index) => named[index] ?? 1)
  const common = {
    dimension,
    averaging,
    batch,
    batchMax: isAdaptive ? batchMax : undefined,
    features,
    classWeights,
    ...exchange,
    plugins
  }
  if (isNetwork) {
    if (options.targetScale !== undefined && !isNumber) throw new OptionError(NO_TARGET_SCALE)
    const number = isNumber ? { kind: 'number' as const, ...(scaling && { scale: scaling }) } : undefined
    const network = text?.network ?? networkOf(model.layers, number, dimension, classes)
    return { model: 'network', network, classes, rule: rule ?? defaultNetworkRule, ...common }
  }
  if (model?.kind === 'custom') {
    const target = customLoss(model.name).classifies ? 'class' : 'number'
    return { model: model.name, target, l2, rule: ruleFor('linear', rule), ...common }
  }
  const name = model?.name ?? (isNumber ? 'linear' : (classes ?? 2) > 2 ? 'softmax' : 'logistic')
  if (name === 'softmax' && classes === undefined) {
    throw new OptionError(
      'model softmax needs the number of classes: give classes (--classes N) or classNames (--class-names A,B,C)'
    )
  }
  if (options.targetScale !== undefined && name !== 'linear') throw new OptionError(NO_TARGET_SCALE)
  const targetScale = name === 'linear' ? scaling : undefined
  const outputs = name === 'softmax' ? classes : undefined
  return {
    model: name,
    classes: outputs,
    l2,
    // Peers have the same rule, whatever rows each of them has.
    rule: ruleFor(name, rule ?? (role === 'serial' ? ruleForRows(name, facts.featuresPerRow) : undefined)),
    targetScale,
    ...common,
    averaging: averagingFor(name, options.averaging)
  }
}

/** Options of a peer whose model a program has. The others describe data or a model. */
const OF_PROGRAMS: ReadonlySet<string> = new Set(
  'rule averaging batch sums trust algorithm localSteps localMomentum sumBytes'.split(' ')
)

/** The spec of a model that only a program can compute. @throws OptionError for options that do not apply to it */
export function programSpec(options: TaskOptions, program: ProgramModel): ProgramSpec {
  const unfit = Object.keys(options).find(name => !OF_PROGRAMS.has(name))
  if (unfit !== undefined)
    throw new OptionError(
      `the model and the data are those of a program (--learner external): remove the option ${unfit === 'checkpoint' ? 'weights' : unfit}`
    )
  const { min: batch, max } = batchRange(options.batch ?? PEER_BATCH)
  const rule = options.rule ?? defaultNetworkRule
  const facts = { batch, isAdaptive: max > batch, isNetwork: true, hasRoom: false, rule }
  return {
    model: 'external',
    program,
    dimension: 0,
    rule,
    averaging: options.averaging ?? defaultAveraging,
    batch,
    features: { constant: false, scale: 'none' },
    ...exchangeOf(options, 'peer', facts)
  }
}

/** The number of classes of the model, including those that are added later. @throws OptionError */
function mostClasses(
  { classesMax }: TaskOptions,
  known: number | undefined,
  { label }: Schema,
  model: TaskModel | undefined
): number | undefined {
  const room = label?.names && Math.max(label.names.length, label.classes ?? 0)
  const most = classesMax ?? room
  if (most === undefined) return known
  if (known !== undefined && most < known) {
    throw new OptionError(`classes-max is ${most}, and there are ${known} classes: increase it`)
  }
  const isSoftmax = model === undefined || (model.kind === 'linear' && model.name === 'softmax')
  if (most > (known ?? most) && !isSoftmax) {
    throw new OptionError('classes are added only to the model softmax: give it, or remove classes-max')
  }
  return most
}

function networkOf(
  layers: ModelSpec,
  number: Target | undefined,
  dimension: number | undefined,
  classes: number | undefined
): NetworkSpec {
  if (dimension === undefined) {
    throw new OptionError('a network needs the number of features: give features (--dimension N)')
  }
  const sample = sampleFor(layers, dimension)
  if (number !== undefined) return { layers, sample, target: number }
  if (classes === undefined) {
    throw new OptionError(
      'a network needs the number of classes: give classes (--classes N), classNames, or target number'
    )
  }
  return { layers, sample, target: { kind: 'class', classes } }
}

/** @throws OptionError if the model does not learn such labels */
function checkLabel(label: LabelSchema | undefined, isNumber: boolean, model: TaskModel | undefined): void {
  if (label?.kind === 'number' && !isNumber) {
    throw new OptionError('the label of the schema is a number: give the model linear, or no model')
  }
  if (label?.names !== undefined && isNumber && model !== undefined) {
    throw new OptionError('the label of the schema has classes: give a model for classes, or no model')
  }
}

/** The number of features, if the options determine it without data. */
function givenDimension(
  { features }: TaskOptions,
  columns: readonly ColumnSchema[] | undefined,
  hashBits: number | undefined,
  constant: boolean
): number | undefined {
  const given = columns ? new Layout(columns, hashBits).dimension : hashBits === undefined ? features : 2 ** hashBits
  return given === undefined ? undefined : given + Number(constant)
}

function scaleOf({ mean, deviation }: Partial<LabelSchema> = {}): TargetScale | undefined {
  return mean === undefined || deviation === undefined ? undefined : { mean, deviation }
}

/** The column of the label, if it is not called `label`. */
function labelName({ data }: TaskOptions, label: LabelSchema | undefined): string | undefined {
  return (typeof data === 'object' ? data.label : undefined) ?? label?.name
}
