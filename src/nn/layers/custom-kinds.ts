/**
 * The registry of custom layer kinds. It does not import TensorFlow.js, so a program without networks can load a
 * plug-in that defines layers.
 */
import type * as Tf from '#tfjs'
import type { WeightSpec } from '../types.js'
import { ModelError } from '../types.js'

type CustomKind = `custom:${string}`

/** A layer of a plug-in, with its options. */
export interface CustomLayerSpec {
  readonly kind: CustomKind
  readonly name?: string
  readonly from?: number
  readonly [option: string]: unknown
}

/** Arguments of a custom layer's factory. */
export interface CustomLayerContext {
  /** Shape of a sample's input, without the leading microbatch axis. */
  readonly input: readonly number[]
  /** The TensorFlow.js instance that executes the layer. A second copy cannot use its tensors. */
  readonly tf: typeof Tf
}

/**
 * A custom layer. It is stateless: weights are arguments. Tensors that it makes and does not return are disposed of
 * automatically; it must not dispose of its arguments.
 */
export interface CustomLayer {
  /** @default none */
  readonly weights?: readonly WeightSpec[]
  /** Shape of a sample's output. @default the input's shape */
  readonly output?: readonly number[]
  /** Multiply-accumulates per sample of the forward pass, for the planner. @default 0 */
  readonly macs?: number
  /**
   * Initial weights, concatenated.
   * @param random uniform in [0, 1)
   * @default zeros
   */
  initial?(random: () => number): Float32Array
  /**
   * @param x [microbatch, …input]
   * @returns [microbatch, …output]
   */
  forward(x: Tf.Tensor, weights: readonly Tf.Tensor[]): Tf.Tensor
  /**
   * The vector-Jacobian product: gradients of the summed loss with respect to x and to the weights, in their order.
   * @param dy gradient with respect to the output
   */
  vjp(
    x: Tf.Tensor,
    weights: readonly Tf.Tensor[],
    dy: Tf.Tensor
  ): { readonly dx: Tf.Tensor; readonly dWeights?: readonly Tf.Tensor[] }
}

/**
 * Creates a custom layer from the options of the model file and its input shape.
 * @param options the layer's options in the model description, without the common ones (`kind`, `name`,
 *   `from`)
 */
export type CustomLayerFactory = (
  options: Readonly<Record<string, unknown>>,
  context: CustomLayerContext
) => CustomLayer

const kinds = new Map<string, CustomLayerFactory>()

export function isCustomKind(kind: string): kind is CustomKind {
  return kind.startsWith('custom:')
}

export function registerCustomLayer(kind: CustomKind, factory: CustomLayerFactory): void {
  kinds.set(kind, factory)
}

/** @throws ModelError if no plug-in defines the kind */
export function customFactory(kind: CustomKind): CustomLayerFactory {
  const factory = kinds.get(kind)
  if (factory !== undefined) return factory
  const names = [...kinds.keys()].join(', ') || 'none'
  throw new ModelError(
    `unknown layer ${kind}; load the plug-in that defines it with the option plugins (loaded: ${names})`
  )
}
