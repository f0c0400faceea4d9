/**
 * The parts of a network. Layers are stateless: weights are arguments, so that the host can store them and upload one
 * layer at a time. VJPs are hand-written, so that a layer's backward pass needs nothing but its input (Pudipeddi et
 * al., "Training Large Neural Networks with Constant Memory using a New Execution Algorithm").
 *
 * Ownership of tensors: a layer disposes of every tensor that it makes and does not return, and never disposes of its
 * arguments. The caller disposes of returned tensors.
 */
import type { Tensor } from '#tfjs'
import { CodedError } from '../base/errors.js'

/** A model description is invalid, or weights do not fit the model. */
export class ModelError extends CodedError {
  static override readonly code = 'ERR_MODEL'
}

/** A file of weights holds numbers that no prediction can use. */
export class WeightsError extends CodedError {
  static override readonly code = 'ERR_WEIGHTS'
}

/** One weight tensor of a layer. */
export interface WeightSpec {
  /** Name within the layer. */
  readonly name: string
  readonly shape: readonly number[]
  /** Number of matrices that are concatenated along the last axis. @default 1 */
  readonly parts?: number
}

/** How devices divide a layer, each of which computes an addend of its output: tensor parallelism, see `split.ts`. */
export interface LayerSplit {
  /** What is divided: heads, or units between two projections. */
  readonly units: number
  /** By weight: whether a device has columns of each of its parts, or rows; of a bias that is added once, the first device. @default all of it */
  readonly axes: readonly ('columns' | 'rows' | 'first' | undefined)[]
  /**
   * The layer with some of the units.
   * @param sum adds a tensor to those of the other devices: of outputs, and of gradients with respect to inputs. Disposes of its argument
   */
  share(units: number, sum: (addend: Tensor) => Tensor): Layer
}

/** A weight tensor of another layer. */
interface SharedWeight {
  /** Index of the layer in the model. It is executed in every step, before the layer that shares the weight. */
  readonly layer: number
  /** Index of the tensor in that layer's weights. */
  readonly weight: number
  readonly shape: readonly number[]
  /** Whether the other layer is frozen, so that there is no gradient. @default false */
  readonly isFrozen?: boolean
}

/** A low-rank addition to a frozen weight W: W + scale·A·B (Hu et al., "LoRA", 2022). A and B are weights of the layer. */
export interface AdapterSpec {
  /** Index of W among the frozen weights; a matrix [inputs, outputs] of `parts` matrices, each with its own A and B. */
  readonly weight: number
  readonly parts: number
  /** Columns of the A of a part. */
  readonly rank: number
  readonly scale: number
}

/** An adapter's tensors: a is [inputs, parts·rank], b [rank, outputs]. */
export interface Adapter {
  readonly a: Tensor
  readonly b: Tensor
  readonly scale: number
}

/** A gradient that a VJP may leave for later. It is returned at once if the VJP sets no function. */
export interface Deferred {
  /** Returns the gradient, or several weights' with the first of them, and frees what it has kept. Call it once. */
  compute?: () => Tensor[]
}

/** What a VJP returns for a weight: its gradient, nothing, the gradients of its adapter's a and b, or its gradient now or later. */
export type WantedGradient = 'full' | 'none' | Adapter | Deferred

/** One pass of one microbatch through a layer: passes with the same seed draw the same random numbers. */
export interface Pass {
  /** Whether dropout and other training-only behaviour is on. */
  readonly training: boolean
  /** Derived from step, layer and microbatch, so that recomputation repeats the forward pass exactly. */
  readonly seed: number
  /**
   * Number of tokens before the padding of each sample, at least 1; for models whose sample has padding.
   * @default no sample is padded
   */
  readonly lengths?: Int32Array
  /** For generation: what the layer keeps of the positions before those of x. @default x starts at position 0 */
  readonly cache?: LayerCache
  /** What the VJP returns for each weight. @default the gradients of all weights */
  readonly wanted?: readonly WantedGradient[]
}

/** Keys and values of a layer of one sample, so that further positions are computed alone. The owner disposes of the tensors. */
export interface LayerCache {
  /** Number of positions before those of x. */
  position: number
  /** [heads, position, width/heads] */
  keys?: Tensor
  values?: Tensor
  /** Caches of the layers of which a layer consists. */
  parts?: readonly LayerCache[]
}

/** Gradients of one backward pass. */
export interface Pullback {
  /** Gradient with respect to the input, of the input's shape; undefined if the input is not float32 (token ids). */
  readonly dx: Tensor | undefined
  /** Gradients of the weights that are trained in their order, summed over the microbatch. */
  readonly dWeights: readonly Tensor[]
}

/** `slope`: one of a few levels of the derivative of GELU; `rows`: a minimum and a step for each row of the last axis. */
export type ActivationCode = 'exact' | 'slope' | 'rows'

export interface Layer {
  readonly kind: string
  /** Unique within the model, such as `block3.attention`. */
  readonly name: string
  /** Weight tensors; flattened and concatenated in this order they are the layer's block. */
  readonly weights: readonly WeightSpec[]
  /**
   * Weights of other layers that follow its own in `forward` and `vjp`; `vjp` returns their gradients likewise.
   * @default none
   */
  readonly shares?: readonly SharedWeight[]
  /** Weights that are not trained and belong to no block. In `forward` and `vjp` they follow the layer's own. @default none */
  readonly frozen?: readonly WeightSpec[]
  /** The layer's own weights: the a and b of each adapter. `forward` and `vjp` take frozen weights with these added. @default none */
  readonly adapters?: readonly AdapterSpec[]
  /** Shapes of a sample's input and output, without the leading microbatch axis. */
  readonly input: readonly number[]
  readonly output: readonly number[]
  /** Shapes per sample of the tensors that `forwardSaving` saves, four bytes an element. */
  readonly activations: readonly (readonly number[])[]
  /** How each saved activation may be kept in few bits: see `few-bits.ts`. @default 'exact' for each */
  readonly codes?: readonly ActivationCode[]
  /** Multiply-accumulates per sample of the forward pass; the VJP takes twice as many, without recomputation. */
  readonly macs: number
  /** Fraction of the training steps that skip the layer, which then passes its input through. @default 0 */
  readonly skipRate?: number
  /** Number of updates after which the layer takes part; before, it passes its input through. @default 0 */
  readonly from?: number
  /** @default each device executes the whole layer */
  readonly split?: LayerSplit
  /**
   * Initial weights, as one block.
   * @param random uniform in [0, 1)
   */
  initialWeights(random: () => number): Float32Array
  /**
   * @param x [microbatch, …input]
   * @returns [microbatch, …output]
   */
  forward(x: Tensor, weights: readonly Tensor[], pass: Pass): Tensor
  /** Like `forward`, and saves the activations that `vjp` would otherwise recompute. */
  forwardSaving(x: Tensor, weights: readonly Tensor[], pass: Pass): SavedForward
  /**
   * @param dy gradient of the summed loss with respect to the output
   * @param saved activations that `forwardSaving` saved for this microbatch; recomputed from x if absent
   */
  vjp(x: Tensor, weights: readonly Tensor[], dy: Tensor, pass: Pass, saved?: readonly Tensor[]): Pullback
}

export interface SavedForward {
  readonly y: Tensor
  /** Saved activations, of the shapes [microbatch, …activation]. The caller disposes of them. */
  readonly saved: readonly Tensor[]
}

/** Sums over the samples of a microbatch, as scalars on the device. */
export interface HeadScore {
  /** In nats, or squared-error units. */
  readonly loss: Tensor
  /** Number of correct samples (for sequences, the mean over positions); undefined for regression. */
  readonly hits: Tensor | undefined
}

/** Factors of the rows of a microbatch, [microbatch] each. */
export interface RowWeights {
  /** Factors of the loss and of hits. */
  readonly score: Float32Array
  /** Factors of the gradient. */
  readonly gradient: Float32Array
}

/** The loss at the end of a network. Forward, loss and backward are one call, so the last outputs are never stashed. */
export interface Head {
  readonly kind: string
  readonly classifies: boolean
  /** Shape of a sample's input. */
  readonly input: readonly number[]
  /** Mean of numbers: it is subtracted from targets and added to predictions in float64, outside of the device. @default 0 */
  readonly mean?: number
  /**
   * @param targets [microbatch] or [microbatch, length], int32 for classes
   * @param weights @default 1 for each row
   */
  score(x: Tensor, targets: Tensor, weights?: RowWeights): HeadScore
  /** Like `score`, with the gradient of the summed loss with respect to x. */
  lossAndGradient(x: Tensor, targets: Tensor, weights?: RowWeights): HeadScore & { readonly dx: Tensor }
  /** @returns [microbatch, …]: probabilities, or the predicted numbers */
  predict(x: Tensor): Tensor
}

/** A sample: numbers of the given shape, or `length` token ids below `vocabulary`. */
export type Sample = { readonly kind: 'features'; readonly shape: readonly number[] } | TokenSample

/** Token ids below `vocabulary`. */
export interface TokenSample {
  readonly kind: 'tokens'
  readonly shape: readonly [length: number]
  readonly vocabulary: number
  /** The token after the end of a text; layers with a padding mask ignore it. @default every token is text */
  readonly padding?: number
  /** The token between the texts of a pair. @default there are no pairs */
  readonly separator?: number
}

/** Layers in the order of prediction, and the head that computes the loss from the last output. */
export interface Model {
  readonly name: string
  readonly sample: Sample
  readonly layers: readonly Layer[]
  readonly head: Head
}

/** Shape arithmetic. */
export const FLOAT_BYTES = 4

/** Number of elements of a tensor. */
export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

/** Number of elements of all tensors together. */
export function totalSize(tensors: readonly { readonly shape: readonly number[] }[]): number {
  return tensors.reduce((sum, { shape }) => sum + sizeOf(shape), 0)
}

export function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis])
}

/** For messages: `4×28×28`. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? 'a number' : shape.join('×')
}
