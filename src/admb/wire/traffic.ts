/** What the bytes of a node's frames carry. */
import type { Chain, Whole } from './frame.js'

/** Bytes of composed frames by what they carry, and what the same sums would take as float32 numbers. */
export interface TrafficBytes {
  /** Gradient sums for the next update. */
  readonly sums: number
  /** Steps to newer predictors. */
  readonly steps: number
  /** Whole predictors. */
  readonly predictors: number
  /** Ids, coverages, acknowledgements and checksums. */
  readonly other: number
  /** About what the sums and steps would take as float32 numbers, sent whole, sparse where that is shorter. */
  readonly float32: number
}

export class Traffic {
  readonly #isLattice: boolean
  #sums = 0
  #steps = 0
  #predictors = 0
  #other = 0
  #float32 = 0

  /** @param isLattice whether sums are integers */
  constructor(isLattice: boolean) {
    this.#isLattice = isLattice
  }

  get bytes(): TrafficBytes {
    return {
      sums: this.#sums,
      steps: this.#steps,
      predictors: this.#predictors,
      other: this.#other,
      float32: this.#isLattice ? this.#float32 : this.#sums + this.#steps
    }
  }

  /** A frame, of whose bytes `content` and `sum` are vectors. */
  countFrame(bytes: number, kind: (Whole | Chain)['kind'] | undefined, content: number, sum: number): void {
    if (kind === 'whole') this.#predictors += content
    else this.#steps += content
    this.#sums += sum
    this.#other += bytes - content - sum
  }

  countFragment(bytes: number, kind: 'sums' | 'steps' | 'predictors'): void {
    if (kind === 'steps') this.#steps += bytes
    else if (kind === 'sums') this.#sums += bytes
    else this.#predictors += bytes
  }

  /** An integer sum or step is sent that takes this many bytes as float32 numbers. */
  countFloat32(bytes: number): void {
    this.#float32 += bytes
  }
}
