/**
 * The learning spec: everything that peers must agree on before they may add up their gradients. The handshake between peers,
 * the state directory and the commands use the same spec.
 */
import type { MasterAlgorithm, Recipe } from '../admb/index.js'
import { type ColumnSchema, type LabelSchema, type ParserOptions, type Schema, schemaText } from '../data/parsing.js'
import type { Execution } from '../l2l/index.js'
import {
  AdaptiveBatch,
  type AveragingSpec,
  averagingRule,
  type BlockLayout,
  type Blocks,
  ClassTable,
  type CustomName,
  carry,
  carryingLayout,
  carryingRecipe,
  checkFeatures,
  checkLocalSteps,
  createAveraging,
  createCustomLearner,
  createLearner,
  createRule,
  InfluenceBound,
  isClassifier,
  isCustomName,
  isDual,
  type Layout,
  type Learner,
  type LocalStepsOptions,
  latticeRecipe,
  lazyAveraging,
  linearLayout,
  type ModelName,
  OptionError,
  digest as plainDigest,
  type RuleSpec,
  roundedRecipe,
  type TargetScale,
  treeDigest
} from '../learning/index.js'
import { describeTuning, type NetworkSpec, networkName, networkText, tokenizerName } from '../nn/spec/network-spec.js'
import { batchRange, weightsByClass } from './option-values.js'

/** Version of frames, of overlay messages and of the grids of integer sums; peers of different versions refuse each other. */
export const PROTOCOL_VERSION = 1

/** Plain data, which is sent to the learner thread and stored as JSON. */
export type LearningSpec = LinearSpec | CustomLossSpec | NetworkLearningSpec | ProgramSpec

/** A linear model with a built-in loss. */
export interface LinearSpec extends CommonSpec {
  readonly model: ModelName
  /** Regression: by which the target is standardised. @default not standardised */
  readonly targetScale?: TargetScale
  readonly network?: undefined
}

/** A linear model with a plug-in's loss. */
export interface CustomLossSpec extends CommonSpec {
  readonly model: CustomName
  /** Determined by the loss. */
  readonly target: 'class' | 'number'
  readonly network?: undefined
}

/** A neural network. */
export interface NetworkLearningSpec extends CommonSpec {
  readonly model: 'network'
  readonly network: NetworkSpec
}

/** A model that only a program in another process can compute: the peer knows its parameters. */
export interface ProgramSpec extends CommonSpec {
  readonly model: 'external'
  readonly program: ProgramModel
  readonly network?: undefined
}

/** What peers know of the model of a program. */
export interface ProgramModel {
  readonly blocks: readonly BlockLayout[]
  /** Digest of the parameters that the model starts from: 32 hexadecimal digits. */
  readonly start: string
  /** Text that the program gives. Programs with other texts must not learn together. */
  readonly fingerprint: string
}

interface CommonSpec {
  /** Number of features, the constant feature included. */
  readonly dimension: number
  readonly classes?: number
  /** Factor of the gradients of each class's inputs. @default 1 for all classes */
  readonly classWeights?: readonly number[]
  readonly l2?: number
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  /** b: gradients per update; the least b if the peers choose it. */
  readonly batch: number
  /** Linear models: the largest b that the peers choose. @default b is fixed */
  readonly batchMax?: number
  /** Gradient sums between peers are integers on a grid. @default they are float32 numbers */
  readonly sums?: 'lattice'
  /** Decides which peers make updates. @default each peer that has b gradients, as in ADMB */
  readonly algorithm?: MasterAlgorithm
  /** H: the number of steps that a peer makes while it fills a batch alone. @default no steps between updates */
  readonly localSteps?: number
  /** μ of the updates that average the copies. @default no momentum */
  readonly localMomentum?: number
  /** Whether the gradient sum of each peer is bounded. @default it is not */
  readonly influence?: 'bounded'
  /** How inputs become features. */
  readonly features: FeatureSpec
  /** Digests of the plug-ins that the spec needs, as `loadPlugins` returns them. */
  readonly plugins?: string
}

/** How inputs become features: constant, hashing, columns, scaling, class names. */
export interface FeatureSpec {
  readonly constant: boolean
  readonly hashBits?: number
  /** Features of rows without columns that are multiplied. @default none */
  readonly interactions?: ParserOptions['interactions']
  /** The columns of a table, in the order of their features. */
  readonly columns?: readonly ColumnSchema[]
  /** The column or key of the label. Peers need not agree on it. @default 'label' */
  readonly label?: string
  readonly scale: 'none' | 'standard'
  readonly classNames?: readonly string[]
}

/** The objects that a spec describes. */
export interface LearningParts {
  readonly learner: Learner
  readonly recipe: Recipe
  /** Names of the classes that are added; undefined if the model has no room for any. */
  readonly classes?: ClassTable
  /** Bound of the gradient sum of each peer; undefined without one. */
  readonly influence?: InfluenceBound
  /** How b adapts; undefined if it is fixed. */
  readonly adaptiveBatch?: AdaptiveBatch
}

/**
 * @param execution how a network is executed; without it, only its layout can be used
 * @param clip largest norm of the gradient of an input, for linear models @default no limit
 * @throws OptionError if the spec is invalid; ModelError, DeviceError for a network
 */
export async function learningParts(spec: LearningSpec, execution?: Execution, clip?: number): Promise<LearningParts> {
  if (spec.model === 'external')
    return carryingParts(spec, programLearner(spec.program), { blocks: spec.program.blocks })
  if (spec.network === undefined) return linearParts(spec, true, clip)
  // Loaded on demand, because it imports TensorFlow.js.
  const { networkLearner } = await import('#l2l')
  const learner = await networkLearner(spec.network, spec.batch, execution, spec.classWeights)
  return carryingParts(spec, learner, learner.layout)
}

/** The same for a linear model, synchronously. @param isLazy see `recipeOf` */
export function linearParts(spec: LinearSpec | CustomLossSpec, isLazy = true, clip?: number): LearningParts {
  const learner = isCustomLoss(spec)
    ? createCustomLearner({ ...spec, clip })
    : createLearner({ ...modelOf(spec), clip, named: growingNames(spec)?.length })
  return carryingParts(spec, learner, undefined, isLazy)
}

/** The parts with the blocks that predictors carry. With integer sums, predictors consist of numbers with few bits. */
function carryingParts(spec: LearningSpec, plain: Learner, layout?: Layout, isLazy?: boolean): LearningParts {
  const { batch, batchMax, sums } = spec
  const influence = spec.influence === undefined ? undefined : new InfluenceBound(plain.layout)
  const bounded = carryingLayout(plain.layout, [influence])
  const adaptiveBatch = batchMax === undefined ? undefined : new AdaptiveBatch({ min: batch, max: batchMax }, bounded)
  const classes = classTableOf(spec)
  const plainRecipe = weightsRecipe(spec, { layout, isLazy })
  const { learner, recipe } = carry({ learner: plain, recipe: plainRecipe }, [classes, influence, adaptiveBatch])
  const rounded = sums === 'lattice' ? roundedRecipe(recipe, learner.layout) : recipe
  return { learner, recipe: rounded, classes, influence, adaptiveBatch }
}

/** Whether the model has weights for features. */
export function isLinear(spec: LearningSpec): spec is LinearSpec | CustomLossSpec {
  return spec.network === undefined && spec.model !== 'external'
}

/** A model of which only the parameters are known. Its initial parameters are zeros; those of the program replace them. */
function programLearner({ blocks }: ProgramModel): Learner {
  const fail = () => {
    throw new OptionError(
      'a program has the model, which this process cannot compute: predict and score in the program'
    )
  }
  return {
    layout: { blocks },
    classifies: false,
    initial: () => blocks.map(({ length }) => new Float32Array(length)),
    score: fail,
    addGradient: fail,
    predict: fail
  }
}

/** The digest of parameters, as in `ProgramModel`. */
export function startDigest(parameters: Blocks): string {
  return plainDigest([parameters])
}

function modelOf({ model, dimension, classes, l2, targetScale, classWeights }: LinearSpec) {
  return { model, dimension, classes, l2, targetScale, classWeights }
}

function isCustomLoss(spec: LearningSpec): spec is CustomLossSpec {
  return isCustomName(spec.model)
}

/** What the recipe depends on besides the spec. */
interface RecipeOptions {
  /** Layout of a network's parameters, for rules that treat their blocks differently. @default not known */
  readonly layout?: Layout
  /** Whether averages are lazy. @default for linear models, whose updates change few elements of many */
  readonly isLazy?: boolean
}

/** The recipe of a spec without a bound of influence and with a fixed b. */
export function recipeOf(spec: LearningSpec): Recipe {
  return carryingRecipe(weightsRecipe(spec), [classTableOf(spec)])
}

/** The recipe for the weights. @throws OptionError for local steps or a momentum out of range */
function weightsRecipe(spec: LearningSpec, { layout, isLazy = isLinear(spec) }: RecipeOptions = {}): Recipe {
  const { rule, sums, batch } = spec
  const plain = createAveraging(spec.averaging)
  const averaging = isLazy ? lazyAveraging(plain) : plain
  const digest = isLinear(spec) ? treeDigest : plainDigest
  let recipe: Recipe = { rule: createRule(rule, layout), averaging, digest }
  const local = localStepsOf(spec)
  if (local !== undefined) {
    checkFeatures({ localSteps: true, ruleWithoutSteps: isDual(rule) })
    checkLocalSteps(local)
    recipe = { ...recipe, rule: averagingRule(recipe.rule, local) }
  }
  return sums === 'lattice' ? latticeRecipe(recipe, { batch }) : recipe
}

/** The steps of peers between updates; undefined if there are none. */
export function localStepsOf({ batch, localSteps, localMomentum }: LearningSpec): LocalStepsOptions | undefined {
  return localSteps === undefined ? undefined : { batch, steps: localSteps, momentum: localMomentum }
}

/** Names of the first classes of a model that has room for more; undefined for others. */
export function growingNames({
  model,
  classes,
  features
}: Omit<LearningSpec, 'dimension'>): readonly string[] | undefined {
  const { classNames } = features
  return model === 'softmax' && classNames && (classes ?? 0) > classNames.length ? classNames : undefined
}

/** The block with the names of the classes that are added; undefined for a model without room for any. */
export function classTableOf(spec: Omit<LearningSpec, 'dimension'>): ClassTable | undefined {
  const [named, classes] = [growingNames(spec), spec.classes ?? 0]
  return named && new ClassTable(named, classes - named.length, linearLayout(0, classes))
}

/** The names of all classes of a predictor, in the order of their numbers. */
export function classNamesOf(spec: LearningSpec, parameters: Blocks): readonly string[] | undefined {
  return classTableOf(spec)?.namesIn(parameters) ?? spec.features.classNames
}

/** @throws OptionError for a model that only a program can compute, whose inputs and weights have no meaning here */
export function refuseProgram({ model }: LearningSpec): void {
  if (model === 'external')
    throw new OptionError(
      'a program has this model and its data: predict and learn there (--learner external), or export safetensors'
    )
}

/** The spec by which inputs for a predictor are read: with the names of all its classes. @throws OptionError */
export function readableSpec(spec: LearningSpec, parameters: Blocks): LearningSpec {
  refuseProgram(spec)
  return { ...spec, features: { ...spec.features, classNames: classNamesOf(spec, parameters) } }
}

/** The fields that both ends of a session compare, named like the options that set them, the most telling first. */
export function learningSpecFields(spec: LearningSpec): [field: string, value: string][] {
  const recipe = recipeOf(spec)
  const { features } = spec
  const scale = targetScaleOf(spec)
  const text = spec.network?.text
  const { weights } = weightsOf(spec)
  return [
    ...(text === undefined ? [] : [['tokenizer', tokenizerName(text)] as [string, string]]),
    ['class-names', (features.classNames ?? []).join(',')],
    ['columns', schemaText(features.columns ?? [])],
    ...startFields(spec),
    ...programFields(spec),
    ['model', spec.network ? networkName(spec.network) : spec.model],
    ['dimension', String(spec.dimension)],
    ['classes', String(spec.classes ?? '')],
    ['hash-bits', String(features.hashBits ?? '')],
    ...(features.interactions === undefined
      ? []
      : [['interactions', interactionsText(features.interactions)] as [string, string]]),
    ['constant', String(features.constant)],
    ['scale', features.scale],
    ['batch', batchText(spec)],
    ['sums', spec.sums ?? 'exact'],
    ['local-steps', String(spec.localSteps ?? '')],
    ...(spec.algorithm === undefined ? [] : [['algorithm', spec.algorithm] as [string, string]]),
    ...(spec.localMomentum === undefined ? [] : [['local-momentum', String(spec.localMomentum)] as [string, string]]),
    ...(spec.influence === undefined ? [] : [['influence', spec.influence] as [string, string]]),
    ['rule', recipe.rule.description],
    ['average', recipe.averaging.description],
    ['l2', String(spec.l2 ?? 0)],
    ...(scale === undefined ? [] : [['target-scale', `${scale.mean}:${scale.deviation}`] as [string, string]]),
    ...(weights === undefined ? [] : [['class-weights', pairs(weights)] as [string, string]]),
    ...(spec.plugins === undefined ? [] : [['plugins', spec.plugins] as [string, string]])
  ]
}

/** What a network starts from, and what of it is trained. */
function startFields({ network }: LearningSpec): [field: string, value: string][] {
  if (network?.weights === undefined) return []
  const { freeze, lora } = describeTuning(network.tuning ?? {})
  return [
    ['weights', network.weights],
    ['freeze', freeze],
    ['lora', lora]
  ]
}

/** As in the option. */
function interactionsText(interactions: NonNullable<FeatureSpec['interactions']>): string {
  return interactions === 'all' ? interactions : interactions.map(pair => pair.join(':')).join(',')
}

/** What programs must have in common. */
function programFields(spec: LearningSpec): [field: string, value: string][] {
  if (spec.model !== 'external') return []
  const { blocks, start, fingerprint } = spec.program
  return [
    ['program', fingerprint],
    ['parameters', blocks.map(({ name, length }) => `${name}:${length}`).join(',')],
    ['start', start]
  ]
}

/** As in the option: a number, or MIN..MAX. */
function batchText({ batch, batchMax }: LearningSpec): string {
  return batchMax === undefined ? String(batch) : `${batch}..${batchMax}`
}

/** Classes that are added later have weight 1. */
function weightsOf({ classWeights, features }: LearningSpec): Pick<LabelSchema, 'weights'> {
  const { classNames } = features
  return weightsByClass(classWeights?.slice(0, classNames?.length), classNames)
}

function pairs(weights: Readonly<Record<string, number>>): string {
  return Object.entries(weights)
    .map(([name, weight]) => `${name}=${weight}`)
    .join(',')
}

/** Whether the model predicts a number instead of a class. */
export function predictsNumbers(spec: LearningSpec): boolean {
  if (isCustomLoss(spec)) return spec.target === 'number'
  if (spec.model === 'external') return false
  return spec.network ? spec.network.target.kind === 'number' : !isClassifier(spec.model)
}

/** Parser options for further inputs of the model, so that labels and features keep their numbers. */
export function parserOptions(spec: LearningSpec): ParserOptions {
  const { dimension, classes, features } = spec
  const { constant, hashBits, interactions, columns: schema, label, classNames } = features
  const isNumber = predictsNumbers(spec)
  return {
    target: isNumber ? 'number' : 'class',
    classes: isNumber || classNames ? undefined : (classes ?? 2),
    classNames,
    constant,
    hashBits,
    interactions,
    schema,
    label,
    dimension: hashBits === undefined ? dimension - (constant ? 1 : 0) : undefined
  }
}

/**
 * What the inputs of the model mean, for people and for the option `schema` of further peers.
 * @param added classes that were added to those of the spec
 */
export function schemaOf(spec: LearningSpec, added?: readonly string[]): Schema {
  if (spec.network?.target.kind === 'next-token') return {}
  if (spec.model === 'external') return { external: true }
  const { columns, label: name, classNames: names, hashBits } = spec.features
  const isNumber = predictsNumbers(spec)
  const classes = spec.classes ?? names?.length ?? 2
  return {
    label: {
      ...(name !== undefined && { name }),
      ...(isNumber
        ? { kind: 'number', ...targetScaleOf(spec) }
        : { kind: 'class', names, classes, ...(added && { added }), ...weightsOf(spec) })
    },
    ...(columns && { columns }),
    ...(hashBits !== undefined && { hashBits })
  }
}

export function targetScaleOf(spec: LearningSpec): TargetScale | undefined {
  if (spec.network?.target.kind === 'number') return spec.network.target.scale
  return 'targetScale' in spec ? spec.targetScale : undefined
}

/** The spec as canonical text for the state directory: equal for equal specs. */
export function specText(spec: LearningSpec): string {
  const { model, network, dimension, classes, classWeights, l2, rule, averaging } = spec
  const { sums, algorithm, localSteps, localMomentum, influence, features, plugins } = spec
  const target = isCustomLoss(spec) ? spec.target : undefined
  // A network has its own.
  const targetScale = spec.network === undefined ? targetScaleOf(spec) : undefined
  const { constant, hashBits, interactions, columns, label, scale, classNames } = features
  const sorted = (object: object) => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
  return JSON.stringify({
    model,
    target,
    network: network && JSON.parse(networkText(network)),
    program: spec.model === 'external' ? spec.program : undefined,
    dimension,
    classes,
    classWeights,
    l2: l2 || undefined,
    targetScale: targetScale && { mean: targetScale.mean, deviation: targetScale.deviation },
    rule: sorted(rule),
    averaging: sorted(averaging),
    batch: spec.batchMax === undefined ? spec.batch : batchText(spec),
    sums,
    algorithm,
    localSteps,
    localMomentum,
    influence,
    features: { constant, hashBits, interactions, columns, label, scale, classNames },
    plugins
  })
}

/** The inverse of `specText`. */
export function parseSpec(text: string): LearningSpec {
  const spec = JSON.parse(text)
  if (typeof spec.batch !== 'string') return spec
  const { min: batch, max: batchMax } = batchRange(spec.batch)
  return { ...spec, batch, batchMax }
}
