/**
 * Fresh weights. Uniform, because that takes no logarithm or cosine, whose last bits differ between machines: all peers must
 * start from the same numbers.
 */

/** Glorot and Bengio (2010): variance gain² · 2 / (inputs + outputs). */
export function glorotUniform(
  into: Float32Array,
  inputs: number,
  outputs: number,
  random: () => number,
  gain = 1
): Float32Array {
  return uniformWeights(into, gain * Math.sqrt(2 / (inputs + outputs)), random)
}

/** Mean 0 and that standard deviation. */
export function uniformWeights(into: Float32Array, deviation: number, random: () => number): Float32Array {
  const limit = Math.sqrt(3) * deviation
  for (let i = 0; i < into.length; i++) into[i] = limit * (2 * random() - 1)
  return into
}
