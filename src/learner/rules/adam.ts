/** Adam (Kingma and Ba, ICLR 2015, algorithm 1), for layered models. */
import { projectOntoBall } from '../blocks.js'
import { describe, resolveNumbers } from '../options.js'
import type { UpdateRule } from '../types.js'

export interface AdamOptions {
  /** Step size, about the most a weight moves in one update. Default 0.001. */
  readonly step?: number
  /** Decay of the mean gradient. Default 0.9. */
  readonly beta1?: number
  /** Decay of the mean squared gradient. Default 0.999. */
  readonly beta2?: number
  /** Added to the root in the denominator. Default 1e-8. */
  readonly epsilon?: number
  /** Radius of the Euclidean ball that parameters are projected onto. Default: none. */
  readonly radius?: number
}

const options = {
  step: { preset: 0.001, least: 0, above: true },
  beta1: { preset: 0.9, least: 0, below: 1 },
  beta2: { preset: 0.999, least: 0, below: 1 },
  epsilon: { preset: 1e-8, least: 0, above: true },
  radius: { preset: undefined, least: 0, above: true }
} as const

/**
 * State: for each block its mean gradient m and then its mean square v, and last `corrections` = (1 − β₁^t, 1 − β₂^t),
 * kept by recurrence so that no power function is needed.
 */
export function adam(given: AdamOptions): UpdateRule {
  const values = resolveNumbers('rule adam', options, given)
  const { step, beta1, beta2, epsilon } = values
  return {
    name: 'adam',
    description: describe('adam', values),
    stateLayout: layout => ({
      blocks: [
        ...layout.blocks.flatMap(({ name, length }) => [
          { name: `${name}.mean`, length },
          { name: `${name}.square`, length }
        ]),
        { name: 'corrections', length: 2 }
      ]
    }),
    step: (previous, sum, count) => {
      const before = previous.state[2 * sum.length]
      const corrections = Float32Array.of(beta1 * before[0] + (1 - beta1), beta2 * before[1] + (1 - beta2))
      const state: Float32Array[] = []
      const [first, second] = corrections
      const parameters = previous.parameters.map((block, k) => {
        const mean = previous.state[2 * k].slice()
        const square = previous.state[2 * k + 1].slice()
        const next = block.slice()
        const gradient = sum[k]
        for (let i = 0; i < next.length; i++) {
          const g = gradient[i] / count
          mean[i] = beta1 * mean[i] + (1 - beta1) * g
          square[i] = beta2 * square[i] + (1 - beta2) * g * g
          next[i] -= (step * (mean[i] / first)) / (Math.sqrt(square[i] / second) + epsilon)
        }
        state.push(mean, square)
        return next
      })
      projectOntoBall(parameters, values.radius)
      return { parameters, state: [...state, corrections] }
    }
  }
}
