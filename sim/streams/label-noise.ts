/** Wrong labels: each input's class is exchanged for another one with some probability. */
import type { Random } from '../engine/random.js'
import type { Inputs } from './inputs.js'

/** The inputs with a share of their classes flipped. What predicts these best is not known before they are drawn. */
export function withLabelNoise(inputs: Inputs, share: number, random: Random): Inputs {
  const { classes = 2 } = inputs
  return {
    ...inputs,
    optimum: undefined,
    next() {
      const row = inputs.next()
      if (random.next() < share) row.labels[0] = (row.labels[0] + 1 + random.below(classes - 1)) % classes
      return row
    }
  }
}
