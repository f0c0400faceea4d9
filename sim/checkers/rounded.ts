/** Property `rounded`: with integer sums, the long blocks of predictors consist of numbers with 10 bits after the leading one. */
import { formatId } from '../../src/admb/index.js'
import type { Blocks, RoundedBlocks } from '../../src/learner/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

/** Bits of float32 numbers that are 0. */
const LOW = (1 << 13) - 1

export class Rounded implements Invariant {
  readonly #rounded: RoundedBlocks

  constructor(rounded: RoundedBlocks) {
    this.#rounded = rounded
  }

  predictorChanged(_node: CheckedNode, { predictor }: PredictorChange): void {
    for (const group of ['parameters', 'average', 'state'] as const) {
      const found = unrounded(predictor[group], this.#rounded[group])
      if (found === undefined) continue
      throw new Violation('rounded', `${formatId(predictor.id)} has ${found} in its ${group}`)
    }
  }
}

function unrounded(blocks: Blocks, isRounded: readonly boolean[]): number | undefined {
  for (const [k, block] of blocks.entries()) {
    if (!isRounded[k]) continue
    const bits = new Int32Array(block.buffer, block.byteOffset, block.length)
    for (let i = 0; i < bits.length; i++) if ((bits[i] & LOW) !== 0) return block[i]
  }
  return undefined
}
