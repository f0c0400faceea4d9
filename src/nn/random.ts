/**
 * Counter-based random numbers: the i-th number of a seed depends on nothing else, so that a layer that is computed again, on
 * whatever backend, sees the same ones. Integer arithmetic only, hence equal on every machine.
 */

const WEYL = 0x9e3779b9
const LANE = 0x632be5ab

/** The finaliser of MurmurHash3 (A. Appleby): a bijection of 32 bits in which each input bit moves about half of the output's. */
function mix32(word: number): number {
  let bits = word
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return bits ^ (bits >>> 16)
}

/** 32 bits, unsigned: number `counter` of a seed. */
export function randomBits(seed: number, counter: number): number {
  const key = mix32(seed ^ LANE)
  return mix32(mix32(Math.imul(counter, WEYL) ^ key) + seed) >>> 0
}

/** A seed of its own for part `index` of whatever has `seed`. */
export function forkSeed(seed: number, index: number): number {
  return randomBits(seed ^ WEYL, index)
}

/** Numbers in [0, 1), one after the other. */
export function uniforms(seed: number): () => number {
  let counter = 0
  return () => randomBits(seed, counter++) / 2 ** 32
}
