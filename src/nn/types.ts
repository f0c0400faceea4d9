/**
 * What a network is made of. Layers are stateless: weights are arguments, so that the host can keep them and lend them to the
 * device one layer at a time. VJPs are written by hand, so that nothing but a layer's input must be kept for its backward
 * pass (Pudipeddi et al., "Training Large Neural Networks with Constant Memory using a New Execution Algorithm").
 *
 * Who disposes of what: a layer disposes of everything that it makes and does not return; it never disposes of its
 * arguments. Whoever is given a tensor disposes of it.
 */
import type { Tensor } from '@tensorflow/tfjs-core'

/** One tensor of a layer's weights. */
export interface WeightSpec {
  /** Name within the layer. */
  readonly name: string
  readonly shape: readonly number[]
}

/** One pass of one microbatch through a layer: passes with the same seed draw the same random numbers. */
export interface Pass {
  /** Whether dropout and the like are on. */
  readonly training: boolean
  /** From step, layer and microbatch, so that a recomputation sees what the forward pass saw. */
  readonly seed: number
}

/** What comes back through a layer. */
export interface Pullback {
  /** Gradient at the input, of the input's shape; undefined for a layer whose input is no float (token numbers). */
  readonly dx: Tensor | undefined
  /** Gradients of the weights, summed over the microbatch, in their order. */
  readonly dWeights: readonly Tensor[]
}

export interface Layer {
  readonly kind: string
  /** Unique within the model, such as `block3.attention`. */
  readonly name: string
  /** All weights; flattened and put one after the other in this order they are the layer's block. */
  readonly weights: readonly WeightSpec[]
  /** Shape of a sample's input and output, without the microbatch's dimension, which comes first. */
  readonly input: readonly number[]
  readonly output: readonly number[]
  /** Shapes of a sample's part of what `forwardKeeping` keeps, four bytes an element. */
  readonly activations: readonly (readonly number[])[]
  /** Multiplications with an addition that a sample's forward pass takes; its VJP takes twice as many, beside recomputation. */
  readonly macs: number
  /** Share of the training steps that leave the layer out, its output then being its input. Default 0. */
  readonly skipRate?: number
  /** Updates after which the layer takes part; before, its output is its input. Default 0. */
  readonly from?: number
  /** Layers that follow one another under the same name change places in training. Default: the layer keeps its place. */
  readonly shuffle?: string
  /** Fresh weights, as one block. @param random uniform in [0, 1) */
  initialWeights(random: () => number): Float32Array
  /** @param x [microbatch, …input] @returns [microbatch, …output] */
  forward(x: Tensor, weights: readonly Tensor[], pass: Pass): Tensor
  /** Like `forward`, and keeps the insides that `vjp` would otherwise compute again. */
  forwardSaving(x: Tensor, weights: readonly Tensor[], pass: Pass): SavedForward
  /**
   * @param dy gradient of the summed loss at the output
   * @param kept what `forwardKeeping` kept of this microbatch; computed again from x if it is not given
   */
  vjp(x: Tensor, weights: readonly Tensor[], dy: Tensor, pass: Pass, kept?: readonly Tensor[]): Pullback
}

export interface SavedForward {
  readonly y: Tensor
  /** Of the shapes [microbatch, …insides]. Whoever is given them disposes of them. */
  readonly saved: readonly Tensor[]
}

/** Sums over a microbatch's samples, as scalars on the device. */
export interface HeadScore {
  /** Nats, or squared-error units. */
  readonly loss: Tensor
  /** Samples (for sequences: means over positions) whose label was hit; undefined for regression. */
  readonly hits: Tensor | undefined
}

/** The end of a network: its loss. Forward, loss and backward are one call, so the last activations are never stashed. */
export interface Head {
  readonly kind: string
  readonly classifies: boolean
  /** Shape of a sample's input. */
  readonly input: readonly number[]
  /** @param targets [microbatch] or [microbatch, length], int32 for classes */
  score(x: Tensor, targets: Tensor): HeadScore
  /** The same with the gradient of the summed loss at x. */
  lossAndGradient(x: Tensor, targets: Tensor): HeadScore & { readonly dx: Tensor }
  /** @returns [microbatch, …]: probabilities, or the predicted numbers */
  predict(x: Tensor): Tensor
}

/** What a sample is: dense numbers of that shape, or so many token numbers below `vocabulary`. */
export type Sample =
  | { readonly kind: 'features'; readonly shape: readonly number[] }
  | { readonly kind: 'tokens'; readonly shape: readonly [length: number]; readonly vocabulary: number }

/** Layers in the order in which predictions go through them, and what the last one's output is judged by. */
export interface Model {
  readonly name: string
  readonly sample: Sample
  readonly layers: readonly Layer[]
  readonly head: Head
}
