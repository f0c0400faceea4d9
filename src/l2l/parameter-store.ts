/** Parameter stores over plain blocks, for computing gradients without updating parameters. */
import { isFiniteBlock } from '../base/numbers.js'
import { type Blocks, DivergenceError } from '../learner/index.js'
import { blockIndices } from '../nn/blocks.js'
import type { Model } from '../nn/types.js'
import type { ParameterStore } from './executor/types.js'

/** Adds numbers to the start of a block. */
export function addToBlock(block: Float32Array, numbers: Float32Array): void {
  for (let i = 0; i < numbers.length; i++) block[i] += numbers[i]
}

/**
 * Concatenates the flat gradients of a layer's tensors into a block.
 * @returns how many numbers were written
 */
export function fillBlock(block: Float32Array, gradients: readonly Float32Array[]): number {
  let offset = 0
  for (const gradient of gradients) {
    block.set(gradient, offset)
    offset += gradient.length
  }
  return offset
}

/** Reads weights from blocks and overwrites other blocks with the gradients. */
export class BlockStore implements ParameterStore {
  protected readonly gradients: Blocks
  readonly #parameters: Blocks
  readonly #indices: readonly (number | undefined)[]

  /** @param gradients may be empty for forward passes */
  constructor(model: Model, parameters: Blocks, gradients: Blocks) {
    this.#parameters = parameters
    this.gradients = gradients
    this.#indices = blockIndices(model)
  }

  weights(layer: number): Float32Array {
    return this.#parameters[this.blockIndex(layer)]
  }

  pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    fillBlock(this.gradients[this.blockIndex(layer)], gradients)
  }

  skip(layer: number): void {
    this.gradients[this.blockIndex(layer)].fill(0)
  }

  protected blockIndex(layer: number): number {
    return this.#indices[layer] as number
  }
}

/** Adds a minibatch's gradients to sums; `rollBack` undoes it. */
export class TransactionalGradientStore extends BlockStore {
  readonly #before: Blocks
  readonly #added: number[] = []

  /** @param before scratch memory for the previous contents of the sums; of the same layout */
  constructor(model: Model, parameters: Blocks, sum: Blocks, before: Blocks) {
    super(model, parameters, sum)
    this.#before = before
  }

  /** @throws DivergenceError if the gradient is not finite; it is not added then */
  override pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    if (!gradients.every(isFiniteBlock)) throw new DivergenceError('the gradient is not a finite number')
    const block = this.blockIndex(layer)
    const sum = this.gradients[block]
    this.#before[block].set(sum)
    this.#added.push(block)
    let offset = 0
    for (const gradient of gradients) {
      addToBlock(sum.subarray(offset), gradient)
      offset += gradient.length
    }
  }

  /** Adds nothing. */
  override skip(): void {}

  /** Restores the sums. */
  rollBack(): void {
    for (const block of this.#added.splice(0)) this.gradients[block].set(this.#before[block])
  }
}
