/**
 * Pseudo-random numbers for shuffles and built-in streams: equal on every machine for equal seeds.
 *
 * The generator is xoshiro128** (D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", 2021). Its state is
 * initialised from the seed by the finaliser of MurmurHash3 over a Weyl sequence.
 */
export class Random {
  readonly #state = new Int32Array(4)
  #spare = Number.NaN

  /** @param seed any safe integer */
  constructor(seed: number) {
    let weyl = seed | 0
    const high = Math.floor(seed / 2 ** 32) | 0
    for (let i = 0; i < 4; i++) {
      weyl = (weyl + 0x9e3779b9) | 0
      let word = weyl ^ Math.imul(high, 0x85ebca6b)
      word = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
      word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35)
      this.#state[i] = word ^ (word >>> 16)
    }
    // The all-zero state is the generator's only fixed point.
    this.#state[3] |= 1
  }

  /** The state, without the spare normal number. */
  save(): number[] {
    return [...this.#state]
  }

  /** Continues from a state that `save` returned. */
  static restore(state: readonly number[]): Random {
    const random = new Random(0)
    random.#state.set(state)
    return random
  }

  /** @returns 32 uniform bits, unsigned */
  bits(): number {
    const s = this.#state
    const product = Math.imul(s[1], 5)
    const result = Math.imul((product << 7) | (product >>> 25), 9)
    const shifted = s[1] << 9
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= shifted
    s[3] = (s[3] << 11) | (s[3] >>> 21)
    return result >>> 0
  }

  /** @returns uniform in [0, 1), a multiple of 2^-32 */
  uniform(): number {
    return this.bits() / 2 ** 32
  }

  /** @returns a uniform integer in [0, bound), `bound` up to 2^32 (bias below bound / 2^32) */
  below(bound: number): number {
    return Math.floor(this.uniform() * bound)
  }

  /** @returns standard normal, by G. Marsaglia's polar method (SIAM Review 6, 1964) */
  normal(): number {
    if (!Number.isNaN(this.#spare)) {
      const spare = this.#spare
      this.#spare = Number.NaN
      return spare
    }
    let u: number
    let v: number
    let square: number
    do {
      u = 2 * this.uniform() - 1
      v = 2 * this.uniform() - 1
      square = u * u + v * v
    } while (square >= 1 || square === 0)
    const factor = Math.sqrt((-2 * Math.log(square)) / square)
    this.#spare = v * factor
    return u * factor
  }
}
