/**
 * The options of a learning task, one set for the command line and the library, and the kind of model that they describe.
 */

import type * as z from 'zod'
import { type Schema, streamType } from '../data/parsing.js'
import type { Execution } from '../l2l/index.js'
import {
  averagingType,
  type BoundedTrust,
  type CustomName,
  customLoss,
  isClassifier,
  isCustomName,
  type ModelName,
  modelNames,
  OptionError,
  type OptionsOf,
  ruleType,
  type TargetScale,
  optionTypes as types
} from '../learning/index.js'
import { loadModel, type ModelSpec, PRESETS, parseModel } from '../nn/spec/model-spec.js'
import type { LoraOptions } from '../nn/spec/network-spec.js'
import type {
  CustomLossSpec,
  FeatureSpec,
  LearningSpec,
  LinearSpec,
  NetworkLearningSpec,
  ProgramSpec
} from './learning-spec.js'
import type { BatchOption, ClassWeights } from './option-values.js'

/** A network as in a model file: `{ model: 'mlp', hidden: [64] }`, or `{ layers: [{ kind: 'dense', units: 8 }, …] }`. */
export type NetworkModel =
  | { readonly model: string; readonly [option: string]: unknown }
  | { readonly layers: readonly object[] }

/** Types of the options of tasks and streams, and of learning specs, for the functions that programs call. */
const { choice, either, flag, list, number, numbers, object, options, text, texts, typed } = types
const target = choice('class', 'number')
const targetScale = object<TargetScale>('{ mean: 190, deviation: 180 }')

/** Type of `Execution`. */
export const executionType = options<Execution>({
  backend: text,
  schedule: text,
  workers: number,
  gradients: text,
  store: text,
  hostMemory: number,
  checkpoint: text,
  microbatch: number,
  stash: text,
  bits: number,
  deviceMemory: number
})

/** Type of `Trust`. */
export const trustType = either(choice('members', 'bounded'), options<BoundedTrust>({ rate: number, signers: number }))

/**
 * What is learned, and from what. `train` and `createPeer` take these options; the commands `train` and `peer` have a flag for
 * each, of the same name unless the comment names it.
 */
export const taskTypes = {
  /**
   * A linear model, `custom:NAME` for a plug-in's loss, a network by the name of its preset (`mlp`, `convnet`, `transformer`,
   * `gpt`), by a YAML or JSON file, or as an object. @default `logistic`, or `softmax` for more than two classes
   */
  model: typed<ModelName | CustomName | NetworkModel | (string & {})>(either(text, object("{ model: 'mlp' }"))),
  /**
   * Numbers of an input (`--dimension`). Peers and networks need it, unless the data determines it or features are hashed.
   * @default inferred from the data
   */
  features: number,
  /** Features are names, hashed into 2^hashBits numbers. @default not hashed */
  hashBits: number,
  /** @default as many as there are `classNames`, or inferred from the data */
  classes: number,
  /** Label texts in the order of their class numbers. @default inferred from the first rows */
  classNames: texts,
  /**
   * Factors of the gradients of inputs by class: `balanced` (n/(C·nᶜ), by the first rows), weights by class name or number, or
   * a YAML or JSON file of them. Classes without one have weight 1. Losses are not weighted. @default those of the schema, or 1
   */
  classWeights: typed<ClassWeights | (string & {})>(either(text, object('{ no: 1, yes: 5 }'))),
  /**
   * Largest number of classes of `softmax`: classes that the first rows or `classNames` lack are added while the model learns.
   * @default none is added
   */
  classesMax: number,
  /** What is predicted. @default determined by the model, or inferred from the first labels; 'class' for networks without data */
  target,
  /** Adds a feature that is always 1. Networks have biases instead. @default true for models other than networks */
  constant: flag,
  /**
   * b: gradients per update. Peers with a linear model can choose b themselves between two bounds, `'32..4096'`, or `'auto'` for
   * these. @default 128 for peers; 1 for `train`, or 32 if it trains a network
   */
  batch: typed<BatchOption>(either(number, types.matching(/^(\d+\.\.\d+|auto)$/, "'MIN..MAX' or 'auto'"))),
  /** @default AdaGrad, or Adam for networks */
  rule: ruleType,
  /** The average of the parameters that serves predictions (`--average`). @default the tail average */
  averaging: averagingType,
  /**
   * Gradient sums of peers: `lattice` are integers on a grid that follows from the predictor, which take a small fraction of the bytes
   * of `exact` float32 numbers. All peers must agree on it. A state directory keeps its own, unless another is given.
   * @default 'lattice'; 'exact' with `classesMax`
   */
  sums: choice('exact', 'lattice'),
  /**
   * Decides which peers make updates: with `admb` each peer that has b gradients, with `mawo` and `dmb` only the root of the tree. With `dmb` it waits for
   * a share of all peers, and streams pause meanwhile. All peers must agree on it.
   * @default 'admb'
   */
  algorithm: choice('admb', 'mawo', 'dmb'),
  /**
   * H: peers step copies of the predictor after every b/H of their own gradients, and an update averages the copies.
   * For lines on which sums take long. All peers must agree on it. @default no steps between updates
   */
  localSteps: number,
  /**
   * μ: with local steps, each update continues in the direction of the previous updates, with this share of their velocity, 0 ≤ μ < 1. All
   * peers must agree on it. @default 0
   */
  localMomentum: number,
  /**
   * Networks with local steps: bytes of a peer's own sum for each weight and update, above 0 and at most 1. A peer sends the elements with the
   * largest progress, and keeps the rest for later updates. All peers must agree on it. @default all elements that do not round to 0
   */
  sumBytes: number,
  /**
   * Whether members of the network are trusted with the predictor. If not, each peer scales its gradient sums down to a bound that all compute
   * from the predictor, and refuses larger ones, so that a hostile peer changes a batch about as much as an honest one. All peers must
   * agree on it. @default 'members'
   */
  trust: trustType,
  /** λ of the penalty λ/2·‖w‖² of linear models. @default 0 */
  l2: number,
  /**
   * The mean and deviation by which the target of the model `linear`, or of a network that predicts a number, is standardised;
   * `none` learns it as it is. All peers must agree on it. @default inferred from the first rows of text, rounded; otherwise `none`
   */
  targetScale: either(choice('none'), targetScale),
  /**
   * `standard`: numeric columns are standardised by the moments of the inputs before them.
   * @default 'standard' for tables whose schema does not scale their numbers, otherwise 'none'
   */
  scale: choice('none', 'standard'),
  /**
   * What the columns and the label mean; or a YAML or JSON file of it, or the URL of a peer's `/schema`.
   * @default inferred from the first rows
   */
  schema: either(text, object<Schema>('{ columns: [] }')),
  /** A file, a built-in stream (`digits`), or either with stream options. @default none */
  data: types.textOr(streamType),
  /** Tokens per row, for networks that read text. @default 64 */
  length: number,
  /**
   * For networks that read text: a `tokenizer.json`, or `wordpiece:SIZE` or `bpe:SIZE` to train one from the data.
   * @default one token per character
   */
  tokenizer: text,
  /**
   * The model and the weights that it starts from (`--weights`): a Hugging Face folder of BERT, GPT-2 or Llama, or safetensors of a
   * network of this project. All peers must start from the same weights. @default weights drawn from a seed
   */
  checkpoint: text,
  /**
   * Layers of the checkpoint whose weights do not change: `embeddings`, `layers:FIRST-LAST` for transformer layers, or names of
   * layers. @default none
   */
  freeze: texts,
  /**
   * All weights of the checkpoint are frozen, and low-rank adapters are trained instead (LoRA), with the output layer of a
   * classifier or regression and layers that the checkpoint lacks. Layers that `freeze` names have no adapters. @default no adapters
   */
  lora: object<LoraOptions>('{ rank: 8 }'),
  /** Modules with custom losses, rules, layers and readers: paths or `file:` URLs. @default none */
  plugins: typed<readonly (string | URL)[]>(list)
}

/**
 * What is learned, and from what: options that the command line and the library share.
 * @interface
 */
export type TaskOptions = OptionsOf<typeof taskTypes>

/** Every field of a spec has a type. */
type SpecTypes = Readonly<
  Record<
    keyof (Pick<LinearSpec, 'targetScale'> & Pick<CustomLossSpec, 'target'> & NetworkLearningSpec & ProgramSpec),
    z.ZodType
  >
>

const specTypes = {
  model: text,
  dimension: number,
  classes: number,
  classWeights: numbers,
  l2: number,
  rule: ruleType,
  averaging: averagingType,
  batch: number,
  batchMax: number,
  sums: choice('lattice'),
  algorithm: choice('mawo', 'dmb'),
  localSteps: number,
  localMomentum: number,
  sumBytes: number,
  influence: choice('bounded'),
  features: options<FeatureSpec>(
    {
      constant: flag,
      hashBits: number,
      interactions: typed<FeatureSpec['interactions']>(either(choice('all'), list)),
      columns: list,
      label: text,
      scale: choice('none', 'standard'),
      classNames: texts
    },
    ['constant', 'scale']
  ),
  plugins: text,
  target,
  targetScale,
  network: object('{ layers, sample, target }'),
  program: object('{ blocks, start, fingerprint }')
} satisfies SpecTypes

/** Type of `LearningSpec`. */
export const specType = options<LearningSpec>(specTypes, [
  'model',
  'dimension',
  'rule',
  'averaging',
  'batch',
  'features'
])

/** A model option, resolved. */
export type TaskModel =
  | { readonly kind: 'linear'; readonly name: ModelName }
  | { readonly kind: 'custom'; readonly name: CustomName }
  | { readonly kind: 'network'; readonly layers: ModelSpec }

/** @throws OptionError for an unknown name, ModelError for a network that cannot be described */
export function modelOf({ model }: TaskOptions): TaskModel | undefined {
  if (model === undefined) return undefined
  if (typeof model === 'object') return { kind: 'network', layers: parseModel(model, 'model') }
  if (isCustomName(model)) {
    customLoss(model)
    return { kind: 'custom', name: model }
  }
  if ((modelNames as readonly string[]).includes(model)) return { kind: 'linear', name: model as ModelName }
  if (!(PRESETS as readonly string[]).includes(model) && !/\.(ya?ml|json)$/i.test(model)) {
    const names = [...modelNames, ...PRESETS].join(', ')
    throw new OptionError(`unknown model '${model}'; expected one of ${names}, custom:NAME, or a YAML or JSON file`)
  }
  return { kind: 'network', layers: loadModel(model) }
}

/** Networks have biases instead of the constant feature. */
export function hasConstant({ constant = true }: TaskOptions, model: TaskModel | undefined): boolean {
  return constant && model?.kind !== 'network'
}

/** Whether the model predicts a number instead of a class. */
export function predictsNumber({ target }: TaskOptions, model: TaskModel | undefined): boolean {
  switch (model?.kind) {
    case 'linear':
      return !isClassifier(model.name)
    case 'custom':
      return !customLoss(model.name).classifies
    case 'network':
      return target === 'number'
    case undefined:
      return target === 'number'
    default:
      return model satisfies never
  }
}
