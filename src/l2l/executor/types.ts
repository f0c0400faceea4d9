/**
 * What the relay works with. The host lends weights a layer at a time and takes gradients a layer at a time; who keeps
 * them, reduces them and steps them is the host's affair.
 */
import type { Tensor } from '@tensorflow/tfjs-core'
import type { Score } from '../../learner/index.js'

/**
 * `baseline`: all weights, gradients and insides on the device, one pass over the whole minibatch. `baseline-ag`: the same
 * a microbatch at a time, gradients accumulated. `l2l`: layer by layer, all microbatches inside. `l2l-p`: the same with the
 * next layer uploaded ahead, and reduction and optimizer beside execution.
 */
export const SCHEDULES = ['baseline', 'baseline-ag', 'l2l', 'l2l-p'] as const
export type Schedule = (typeof SCHEDULES)[number]

/** Where layer outputs wait for the backward pass. */
export const STASH_LOCATIONS = ['device', 'host', 'disk'] as const
export type StashLocation = (typeof STASH_LOCATIONS)[number]

/** In what numbers layer outputs wait, and weights and gradients cross between host and device. Masters are float32. */
export const PRECISIONS = ['float32', 'bf16'] as const
export type Precision = (typeof PRECISIONS)[number]

/** Keeper of weights and gradients. Layers are named by their number in the model. */
export interface ParameterStore {
  /** The layer's block. It must not change until the layer's gradient was taken, or the step was given up. */
  weights(layer: number): Float32Array
  /** The layer's gradients summed over the minibatch: flat arrays that are its block one after the other, valid during the call. */
  pushGradients(layer: number, gradients: readonly Float32Array[]): void
  /** The layer was left out of this step: its gradient is zero. */
  skip(layer: number): void
}

/** A minibatch on the host. */
export interface Batch {
  readonly size: number
  /** Rows [from, to) on the device: [to − from, …sample]. */
  inputs(from: number, to: number): Tensor
  /** Their targets, as the head wants them. */
  targets(from: number, to: number): Tensor
}

/** Sums over a minibatch. */
export type StepScore = Readonly<Score>

/** A store of tensors, addressed by layer and microbatch. */
export interface Stash {
  /** Takes a tensor over. */
  put(layer: number, microbatch: number, tensor: Tensor): void
  /** What was put there, still kept. Give it back with `release`. */
  borrow(layer: number, microbatch: number): Tensor
  release(tensor: Tensor): void
  /** Forgets what was put there. */
  drop(layer: number, microbatch: number): void
  /** Most bytes that were in host memory at once. */
  readonly peakBytes: number
  /** Forgets everything; it can be used again. */
  clear(): void
  /** Forgets everything for good. */
  close(): void
}
