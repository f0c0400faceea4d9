/** What a learning spec describes: the learner, the recipe of its updates and the blocks that predictors carry. */
import type { Recipe } from '../admb/index.js'
import type { DevicePool, GroupExecution } from '../l2l/index.js'
import {
  AdaptiveBatch,
  averagingRule,
  type Blocks,
  ClassTable,
  carry,
  carryingLayout,
  carryingRecipe,
  checkFeatures,
  checkLocalSteps,
  checkSumBytes,
  createAveraging,
  createCustomLearner,
  createLearner,
  createRule,
  InfluenceBound,
  isDual,
  type Layout,
  type Learner,
  type LocalStepsOptions,
  latticeRecipe,
  lazyAveraging,
  linearLayout,
  OptionError,
  packedDigest,
  digest as plainDigest,
  roundedRecipe,
  SparseSums,
  sparseParts,
  treeDigest
} from '../learning/index.js'
import {
  type CustomLossSpec,
  growingNames,
  isCustomLoss,
  isLinear,
  type LearningSpec,
  type LinearSpec,
  type ProgramModel,
  refuseProgram
} from './learning-spec.js'

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
  /** The devices that share the computation of a network; undefined if the learner's thread computes all. */
  readonly devices?: DevicePool
  /** Budget of the elements of own sums; undefined without one. */
  readonly budget?: SparseSums
}

/** To score and predict. All schedules have the forward pass of `l2l`, for which one device suffices. */
export function scoringExecution<T extends GroupExecution>(execution: T) {
  return { ...execution, schedule: 'l2l', workers: 1 } as const
}

/**
 * @param execution how a network is executed; without it, only its layout can be used
 * @param clip largest norm of the gradient of an input, for linear models @default no limit
 * @throws OptionError if the spec is invalid; ModelError, DeviceError for a network
 */
export async function learningParts(
  spec: LearningSpec,
  execution?: GroupExecution,
  clip?: number
): Promise<LearningParts> {
  if (spec.model === 'external')
    return carryingParts(spec, programLearner(spec.program), { blocks: spec.program.blocks })
  if (spec.network === undefined) return linearParts(spec, true, clip)
  // Loaded on demand, because it imports TensorFlow.js.
  const { networkLearner } = await import('#l2l')
  const learner = await networkLearner(spec.network, spec.batch, execution, spec.classWeights)
  return { ...carryingParts(spec, learner, learner.layout), devices: learner.devices }
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
  const { batch, batchMax, sums, sumBytes } = spec
  const influence = spec.influence === undefined ? undefined : new InfluenceBound(plain.layout)
  const bounded = carryingLayout(plain.layout, [influence])
  const adaptiveBatch = batchMax === undefined ? undefined : new AdaptiveBatch({ min: batch, max: batchMax }, bounded)
  const classes = classTableOf(spec)
  const plainRecipe = weightsRecipe(spec, { layout, isLazy })
  const budget = sumBytes === undefined ? undefined : sparseSums(sumBytes, plain.layout, plainRecipe)
  const parts = { learner: plain, recipe: plainRecipe }
  const { learner, recipe } = budget ? sparseParts(parts, budget) : carry(parts, [classes, influence, adaptiveBatch])
  const rounded = sums === 'lattice' ? roundedRecipe(recipe, learner.layout) : recipe
  return { learner, recipe: rounded, classes, influence, adaptiveBatch, budget }
}

/** @throws OptionError for a budget out of range */
function sparseSums(bytes: number, layout: Layout, { rule }: Recipe): SparseSums {
  checkSumBytes(bytes)
  return new SparseSums(bytes, layout, { firstSquare: rule.firstSquare })
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
  const { rule, sums, sumBytes, batch } = spec
  const plain = createAveraging(spec.averaging)
  // Without an average, the predictor of a program would contain the parameters twice.
  const isLeft = spec.model === 'external' && plain.name === 'none'
  const averaging = isLazy || isLeft ? lazyAveraging(plain) : plain
  const digest = isLinear(spec) ? treeDigest : spec.model === 'external' ? packedDigest : plainDigest
  let recipe: Recipe = { rule: createRule(rule, layout), averaging, digest }
  const local = localStepsOf(spec)
  if (local !== undefined) {
    checkFeatures({ localSteps: true, ruleWithoutSteps: isDual(rule) })
    checkLocalSteps(local)
    recipe = { ...recipe, rule: averagingRule(recipe.rule, local) }
  }
  return sums === 'lattice' && sumBytes === undefined ? latticeRecipe(recipe, { batch }) : recipe
}

/** The steps of peers between updates; undefined if there are none. */
export function localStepsOf({ batch, localSteps, localMomentum }: LearningSpec): LocalStepsOptions | undefined {
  return localSteps === undefined ? undefined : { batch, steps: localSteps, momentum: localMomentum }
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

/** The spec by which inputs for a predictor are read: with the names of all its classes. @throws OptionError */
export function readableSpec(spec: LearningSpec, parameters: Blocks): LearningSpec {
  refuseProgram(spec)
  return { ...spec, features: { ...spec.features, classNames: classNamesOf(spec, parameters) } }
}
