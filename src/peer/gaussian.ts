/**
 * Draws from the standard normal distribution with a cryptographic generator: noise that can be predicted protects nothing. Box–Muller
 * with uniform numbers of 53 bits, whose largest result is 8.6.
 */

/** Fills an array of at most 16,384 numbers with random bits. */
export type RandomBits = (words: Uint32Array<ArrayBuffer>) => void

const WORDS = 4096
const SCALE = 2 ** -53

/** @param fill a cryptographic generator, or a seeded one in tests */
export function gaussian(fill: RandomBits = words => crypto.getRandomValues(words)): () => number {
  const words = new Uint32Array(WORDS)
  let used = WORDS
  let second: number | undefined
  // 53 bits, from 0 to 1 − 2^−53.
  const uniform = () => {
    if (used === WORDS) {
      fill(words)
      used = 0
    }
    const high = words[used++] >>> 5
    return (high * 2 ** 26 + (words[used++] >>> 6)) * SCALE
  }
  return () => {
    if (second !== undefined) {
      const drawn = second
      second = undefined
      return drawn
    }
    const radius = Math.sqrt(-2 * Math.log(uniform() + SCALE))
    const angle = 2 * Math.PI * uniform()
    second = radius * Math.sin(angle)
    return radius * Math.cos(angle)
  }
}
