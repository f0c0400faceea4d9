/**
 * Counter-based random numbers and initial weights. The i-th number of a seed depends on nothing else, so a recomputed
 * layer draws the same numbers on any backend. Integer arithmetic only, so the numbers are equal on every machine.
 */

const WEYL = 0x9e3779b9
const LANE = 0x632be5ab

/**
 * MurmurHash3's 32-bit finalizer (A. Appleby): a bijection in which each input bit flips about half of the output bits.
 */
function mix32(word: number): number {
  let bits = word
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return bits ^ (bits >>> 16)
}

/** Random number `counter` of a seed: 32 bits, unsigned. */
export function randomBits(seed: number, counter: number): number {
  const key = mix32(seed ^ LANE)
  return mix32(mix32(Math.imul(counter, WEYL) ^ key) + seed) >>> 0
}

/** Derives an independent seed for child `index` of `seed`. */
export function forkSeed(seed: number, index: number): number {
  return randomBits(seed ^ WEYL, index)
}

/** A generator of uniform numbers in [0, 1). */
export function uniforms(seed: number): () => number {
  let counter = 0
  return () => randomBits(seed, counter++) / 2 ** 32
}

/**
 * Fills a block with Glorot uniform weights (Glorot and Bengio, 2010): variance gain² · 2 / (inputs + outputs). Uniform
 * rather than normal, because logarithms and cosines differ in the last bit between machines and all peers must start
 * equal.
 * @param random uniform in [0, 1)
 */
export function glorotUniform(
  into: Float32Array,
  inputs: number,
  outputs: number,
  random: () => number,
  gain = 1
): Float32Array {
  return uniformWeights(into, gain * Math.sqrt(2 / (inputs + outputs)), random)
}

/** Fills a block with uniform weights of mean 0 and the given standard deviation. */
export function uniformWeights(into: Float32Array, deviation: number, random: () => number): Float32Array {
  const limit = Math.sqrt(3) * deviation
  for (let i = 0; i < into.length; i++) into[i] = limit * (2 * random() - 1)
  return into
}
