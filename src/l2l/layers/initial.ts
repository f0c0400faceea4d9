/** Fresh weights. */

/** Glorot and Bengio (2010), uniform: variance 2 / (inputs + outputs). */
export function glorot(into: Float32Array, inputs: number, outputs: number, random: () => number): void {
  const limit = Math.sqrt(6 / (inputs + outputs))
  for (let i = 0; i < into.length; i++) into[i] = limit * (2 * random() - 1)
}
