/** The options of a learning task: one set for the command line and the library. */
import type { AveragingSpec, CustomName, ModelName, RuleSpec, TargetScale, Trust } from '../learner/index.js'
import type { LoraOptions } from '../nn/spec/network-spec.js'
import type { Schema, StreamOptions } from '../streams/index.js'
import type { BatchOption } from './batch.js'
import type { ClassWeights } from './class-weights.js'

/** A network as in a model file: `{ model: 'mlp', hidden: [64] }`, or `{ layers: [{ kind: 'dense', units: 8 }, …] }`. */
export type NetworkModel =
  | { readonly model: string; readonly [option: string]: unknown }
  | { readonly layers: readonly object[] }

/**
 * What is learned, and from what. `train` and `createPeer` take these options; the commands `train` and `peer` have a flag for
 * each, of the same name unless the comment names it.
 */
export interface TaskOptions {
  /**
   * A linear model, `custom:NAME` for a plug-in's loss, a network by the name of its preset (`mlp`, `convnet`, `transformer`,
   * `gpt`), by a YAML or JSON file, or as an object. @default `logistic`, or `softmax` for more than two classes
   */
  readonly model?: ModelName | CustomName | NetworkModel | (string & {})
  /**
   * Numbers of an input (`--dimension`). Peers and networks need it, unless the data determines it or features are hashed.
   * @default inferred from the data
   */
  readonly features?: number
  /** Features are names, hashed into 2^hashBits numbers. @default not hashed */
  readonly hashBits?: number
  /** @default as many as there are `classNames`, or inferred from the data */
  readonly classes?: number
  /** Label texts in the order of their class numbers. @default inferred from the first rows */
  readonly classNames?: readonly string[]
  /**
   * Factors of the gradients of inputs by class: `balanced` (n/(C·nᶜ), by the first rows), weights by class name or number, or
   * a YAML or JSON file of them. Classes without one have weight 1. Losses are not weighted. @default those of the schema, or 1
   */
  readonly classWeights?: ClassWeights | (string & {})
  /**
   * Largest number of classes of `softmax`: classes that the first rows or `classNames` lack are added while the model learns.
   * @default none is added
   */
  readonly classesMax?: number
  /** What is predicted. @default determined by the model, or inferred from the first labels; 'class' for networks without data */
  readonly target?: 'class' | 'number'
  /** Adds a feature that is always 1. Networks have biases instead. @default true for models other than networks */
  readonly constant?: boolean
  /**
   * b: gradients per update. Peers with a linear model can choose b themselves between two bounds, `'32..4096'`, or `'auto'` for
   * these. @default 128 for peers; 1 for `train`, or 32 if it trains a network
   */
  readonly batch?: BatchOption
  /** @default AdaGrad, or Adam for networks */
  readonly rule?: RuleSpec
  /** The average of the parameters that serves predictions (`--average`). @default the tail average */
  readonly averaging?: AveragingSpec
  /**
   * Gradient sums of peers: `lattice` are integers on a grid that follows from the predictor, which take a small fraction of the bytes
   * of `exact` float32 numbers. All peers must agree on it. A state directory keeps its own, unless another is given.
   * @default 'lattice'; 'exact' with `classesMax`
   */
  readonly sums?: 'exact' | 'lattice'
  /**
   * H: peers step copies of the predictor after every b/H of their own gradients, and an update averages the copies.
   * For lines on which sums take long. All peers must agree on it. @default no steps between updates
   */
  readonly localSteps?: number
  /**
   * μ: with local steps, each update continues in the direction of the previous updates, with this share of their velocity, 0 ≤ μ < 1. All
   * peers must agree on it. @default 0
   */
  readonly localMomentum?: number
  /**
   * Whether members of the network are trusted with the predictor. If not, each peer scales its gradient sums down to a bound that all compute
   * from the predictor, and refuses larger ones, so that a hostile peer changes a batch about as much as an honest one. All peers must
   * agree on it. @default 'members'
   */
  readonly trust?: Trust
  /** λ of the penalty λ/2·‖w‖² of linear models. @default 0 */
  readonly l2?: number
  /**
   * The mean and deviation by which the target of the model `linear`, or of a network that predicts a number, is standardised;
   * `none` learns it as it is. All peers must agree on it. @default inferred from the first rows of text, rounded; otherwise `none`
   */
  readonly targetScale?: TargetScale | 'none'
  /**
   * `standard`: numeric columns are standardised by the moments of the inputs before them.
   * @default 'standard' for tables whose schema does not scale their numbers, otherwise 'none'
   */
  readonly scale?: 'none' | 'standard'
  /**
   * What the columns and the label mean; or a YAML or JSON file of it, or the URL of a peer's `/schema`.
   * @default inferred from the first rows
   */
  readonly schema?: Schema | string
  /** A file, a built-in stream (`digits`), or either with stream options. @default none */
  readonly data?: string | StreamOptions
  /** Tokens per row, for networks that read text. @default 64 */
  readonly length?: number
  /**
   * For networks that read text: a `tokenizer.json`, or `wordpiece:SIZE` or `bpe:SIZE` to train one from the data.
   * @default one token per character
   */
  readonly tokenizer?: string
  /**
   * The model and the weights that it starts from (`--weights`): a Hugging Face folder of BERT, GPT-2 or Llama, or safetensors of a
   * network of this project. All peers must start from the same weights. @default weights drawn from a seed
   */
  readonly checkpoint?: string
  /**
   * Layers of the checkpoint whose weights do not change: `embeddings`, `layers:FIRST-LAST` for transformer layers, or names of
   * layers. @default none
   */
  readonly freeze?: readonly string[]
  /**
   * All weights of the checkpoint are frozen, and low-rank adapters are trained instead (LoRA), with the output layer of a
   * classifier or regression and layers that the checkpoint lacks. Layers that `freeze` names have no adapters. @default no adapters
   */
  readonly lora?: LoraOptions
  /** Modules with custom losses, rules, layers and readers: paths or `file:` URLs. @default none */
  readonly plugins?: readonly (string | URL)[]
}
