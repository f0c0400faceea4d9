/**
 * Memory of the parameter server: each layer's parameters and optimizer state, and slots for gradients waiting to be
 * applied.
 */
import { isFiniteBlock } from '../../base/floats.js'
import { mixInto, type UpdateRule, type WeightedAveraging } from '../../learner/index.js'

/** The host's memory of one layer. */
export interface BlockMemory {
  readonly parameters: Float32Array
  /** The same array as `parameters` if no average is maintained. */
  readonly average: Float32Array
  /** The update rule's state of this block. */
  readonly state: readonly Float32Array[]
}

/**
 * Updates one layer in place.
 * @param gradient sum over the minibatch
 * @returns whether the gradient was finite; if not, nothing was changed
 */
export function stepBlock(
  { parameters, average, state }: BlockMemory,
  gradient: Float32Array,
  rule: UpdateRule,
  averaging: WeightedAveraging,
  count: number,
  updates: number
): boolean {
  if (!isFiniteBlock(gradient)) return false
  const current = { parameters: [parameters], state }
  if (rule.stepInPlace !== undefined) rule.stepInPlace(current, [gradient], count, updates)
  else {
    const next = rule.step(current, [gradient], count, updates)
    parameters.set(next.parameters[0])
    for (const [i, block] of state.entries()) block.set(next.state[i])
  }
  if (average !== parameters) mixInto(average, parameters, averaging.weight(updates))
  return true
}

/** Total bytes of the slots, unless they would be fewer than two and one per server thread. */
const SLOT_BYTES = 2 ** 28

/**
 * A ring of gradient buffers, each large enough for any layer. Their number is bounded, so that a model of a billion
 * weights does not need the same memory again for gradients.
 */
export class GradientSlots {
  readonly memory: readonly Float32Array[]
  /** The block that last acquired each slot. */
  readonly #owners: (number | undefined)[]
  #next = 0

  /** @param allocate memory for `length` numbers */
  constructor(lengths: readonly number[], threads: number, allocate: (length: number) => Float32Array) {
    const longest = lengths.reduce((most, length) => Math.max(most, length), 0)
    const fitting = Math.floor(SLOT_BYTES / Math.max(1, longest * Float32Array.BYTES_PER_ELEMENT))
    const count = threads === 0 ? 1 : Math.min(lengths.length, Math.max(threads + 1, fitting))
    this.memory = Array.from({ length: count }, () => allocate(longest))
    this.#owners = this.memory.map(() => undefined)
  }

  /**
   * The least recently acquired slot.
   * @param wait blocks until the previous owner's gradient was applied
   */
  acquire(block: number, wait: (block: number) => void): number {
    const slot = this.#next
    this.#next = (slot + 1) % this.memory.length
    const previous = this.#owners[slot]
    if (previous !== undefined) wait(previous)
    this.#owners[slot] = block
    return slot
  }
}
