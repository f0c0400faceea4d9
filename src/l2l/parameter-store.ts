/** Keepers of weights and gradients that are plain blocks, owned by whoever asks for a gradient. */
import { type Blocks, DivergenceError, type GradientProgress } from '../learner/index.js'
import type { Model } from '../nn/types.js'
import { addToBlock, blockIndices, fillBlock } from './block-tensors.js'
import type { ParameterStore } from './executor/types.js'
import { isFiniteBlock } from './training/block-step.js'

/** Lends blocks, and writes gradients over others. */
export class BlockStore implements ParameterStore {
  protected readonly gradients: Blocks
  readonly #parameters: Blocks
  readonly #numbers: readonly (number | undefined)[]

  /** @param gradients may be empty for forward passes */
  constructor(model: Model, parameters: Blocks, gradients: Blocks) {
    this.#parameters = parameters
    this.gradients = gradients
    this.#numbers = blockIndices(model)
  }

  weights(layer: number): Float32Array {
    return this.#parameters[this.block(layer)]
  }

  pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    fillBlock(this.gradients[this.block(layer)], gradients)
  }

  skip(layer: number): void {
    this.gradients[this.block(layer)].fill(0)
  }

  /** Number of a layer's block. */
  protected block(layer: number): number {
    return this.#numbers[layer] as number
  }
}

/** Adds all gradients of a minibatch to what is there, or none, and tells of each block that is done. */
export class TransactionalGradientStore extends BlockStore {
  readonly #before: Blocks
  readonly #progress: GradientProgress | undefined
  readonly #added: number[] = []

  /** @param before where the sum's blocks are kept as they were; of the same layout */
  constructor(model: Model, parameters: Blocks, sum: Blocks, before: Blocks, progress?: GradientProgress) {
    super(model, parameters, sum)
    this.#before = before
    this.#progress = progress
  }

  /** @throws DivergenceError if the gradient is not finite; it was not added then */
  override pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    if (!gradients.every(isFiniteBlock)) throw new DivergenceError('the gradient is not a finite number')
    const block = this.block(layer)
    const sum = this.gradients[block]
    this.#before[block].set(sum)
    this.#added.push(block)
    let at = 0
    for (const part of gradients) {
      addToBlock(sum.subarray(at), part)
      at += part.length
    }
    this.#progress?.ready(block)
  }

  override skip(layer: number): void {
    this.#progress?.ready(this.block(layer))
  }

  /** Makes the sum what it was. */
  rollBack(): void {
    for (const block of this.#added.splice(0)) this.gradients[block].set(this.#before[block])
    this.#progress?.revoked()
  }
}
