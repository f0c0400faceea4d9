/**
 * Seeded random number generators, forked by name. Independent generators for inputs, network and faults make sure that two
 * algorithms, or runs with and without a fault, receive the same inputs. The output is the same on every
 * machine: the generator uses integer arithmetic, and the distributions use portable functions.
 */

import type { Signer } from '../../src/admb/index.js'
import { portableLog } from '../../src/numeric/exp.js'

/** sfc32 (Chris Doty-Humphrey, PractRand), seeded by hashing a name into a parent's seed. */
export class Random {
  readonly #seed: number
  #a = 0
  #b = 0
  #c = 0
  #counter = 1
  #spare = Number.NaN

  constructor(seed: number, name = '') {
    let hash = (seed ^ 0x9e3779b9) >>> 0
    hash = mix(hash ^ Math.floor(seed / 2 ** 32))
    for (let i = 0; i < name.length; i++) hash = mix(Math.imul(hash ^ name.charCodeAt(i), 0x01000193))
    this.#seed = hash
    this.#a = mix(hash)
    this.#b = mix(hash + 0x6d2b79f5)
    this.#c = mix(hash ^ 0x85ebca6b)
    for (let i = 0; i < 12; i++) this.integer()
  }

  /** An independent generator with that name. It does not depend on what has been drawn. */
  fork(name: string): Random {
    return new Random(this.#seed, name)
  }

  /** 32 random bits. */
  integer(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0
    return t >>> 0
  }

  /** Uniform in [0, 1). */
  next(): number {
    return this.integer() / 2 ** 32
  }

  /** Uniform in 0 … below − 1. */
  below(below: number): number {
    return Math.floor(this.next() * below)
  }

  /** Standard normal, by Marsaglia's polar method. */
  normal(): number {
    if (!Number.isNaN(this.#spare)) {
      const spare = this.#spare
      this.#spare = Number.NaN
      return spare
    }
    for (;;) {
      const x = 2 * this.next() - 1
      const y = 2 * this.next() - 1
      const square = x * x + y * y
      if (square >= 1 || square === 0) continue
      const scale = Math.sqrt((-2 * portableLog(square)) / square)
      this.#spare = y * scale
      return x * scale
    }
  }

  /** Exponential with the given mean. */
  exponential(mean: number): number {
    return -portableLog(1 - this.next()) * mean
  }

  /** Shuffles in place. */
  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.below(i + 1)
      const item = items[i]
      items[i] = items[j]
      items[j] = item
    }
    return items
  }
}

function mix(value: number): number {
  let x = value >>> 0
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}

/**
 * Signatures of simulated nodes: a hash with a key for each node. Verification computes it again, so it is as strong as the rule that
 * a node signs only with its own signer.
 */
const encoder = new TextEncoder()

export function simulatedSigner(self: string): Signer {
  const sign = (origin: string, bytes: Uint8Array) => wide(64, encoder.encode(`${origin}\n`), bytes)
  return {
    sign: bytes => sign(self, bytes),
    verify: (origin, bytes, signature) => sign(origin, bytes).every((byte, i) => byte === signature[i]),
    hash: bytes => wide(16, bytes)
  }
}

/** A hash of `size` bytes, a multiple of 16: four lanes of multiply and shift for the first 16, from which the others follow. */
function wide(size: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const lanes = Uint32Array.of(0x2f0b4c47, 0x51ed270b, 0x6a09e667, 0x3c6ef372)
  for (const part of parts) {
    for (let i = 0; i < part.length; i++) mixed(lanes, i & 3, part[i])
    mixed(lanes, 0, part.length)
  }
  const hash = new Uint32Array(size / 4)
  for (let i = 0; i < hash.length; i++) {
    for (let lane = 0; lane < 4; lane++) mixed(lanes, lane, i)
    hash[i] = lanes[i & 3]
  }
  return new Uint8Array(hash.buffer)
}

function mixed(lanes: Uint32Array, lane: number, value: number): void {
  const mixed = Math.imul(lanes[lane] ^ value ^ lanes[(lane + 1) & 3], 0xcc9e2d51)
  lanes[lane] = mixed ^ (mixed >>> 15)
}
