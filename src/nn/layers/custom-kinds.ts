/**
 * Kinds of layers that a program brings along, by name. Nothing here computes, so that a program without networks can
 * load a plug-in that has layers without loading TensorFlow.js.
 */
import type * as Tf from '@tensorflow/tfjs-core'
import { ModelError } from '../errors.js'
import type { WeightSpec } from '../types.js'

export type CustomKind = `custom:${string}`

/** Where the layer stands. */
export interface CustomLayerContext {
  /** Shape of a sample's input, without the microbatch's dimension, which comes first. */
  readonly input: readonly number[]
  /** The TensorFlow.js that executes it: a second copy would know nothing of its tensors. */
  readonly tf: typeof Tf
}

/**
 * A layer, stateless: weights are arguments. Tensors that it makes and does not return are disposed of for it; its
 * arguments are not its own.
 */
export interface CustomLayer {
  /** Default: none. */
  readonly weights?: readonly WeightSpec[]
  /** Shape of a sample's output. Default: that of the input. */
  readonly output?: readonly number[]
  /** Multiplications with an addition that a sample's forward pass takes, for the planner. Default 0. */
  readonly macs?: number
  /** Fresh weights, all one after the other. Default: zeros. @param random uniform in [0, 1) */
  initial?(random: () => number): Float32Array
  /** @param x [microbatch, …input] @returns [microbatch, …output] */
  forward(x: Tf.Tensor, weights: readonly Tf.Tensor[]): Tf.Tensor
  /**
   * What comes back through the layer: gradients of the summed loss at x and at the weights, in their order.
   * @param dy gradient at the output
   */
  vjp(
    x: Tf.Tensor,
    weights: readonly Tf.Tensor[],
    dy: Tf.Tensor
  ): { readonly dx: Tf.Tensor; readonly dWeights?: readonly Tf.Tensor[] }
}

/** @param options what the model's description holds for the layer, beside kind and name */
export type CustomLayerFactory = (options: Readonly<Record<string, unknown>>, place: CustomLayerContext) => CustomLayer

const kinds = new Map<string, CustomLayerFactory>()

export function isCustomKind(kind: string): kind is CustomKind {
  return kind.startsWith('custom:')
}

export function registerCustomLayer(kind: CustomKind, factory: CustomLayerFactory): void {
  kinds.set(kind, factory)
}

/** @throws ModelError if no plug-in has it */
export function customFactory(kind: CustomKind): CustomLayerFactory {
  const factory = kinds.get(kind)
  if (factory !== undefined) return factory
  const names = [...kinds.keys()].join(', ') || 'none'
  throw new ModelError(`there is no layer ${kind}: give the plug-in that has it (known: ${names})`)
}
