/**
 * Steps sized by the block they change, so that every layer of a deep network learns at its own scale: LARS (You, Gitman and
 * Ginsburg, "Large Batch Training of Convolutional Networks", 2017) over momentum, and LAMB (You et al., ICLR 2020,
 * algorithm 2) over Adam. A block is a layer.
 */
import { describe, resolveNumbers } from '../options.js'
import type { Layout, UpdateRule } from '../types.js'

export interface LarsOptions {
  /** Step size, before it is scaled to a block. Default 1. */
  readonly step?: number
  /** Share of the velocity kept at each update. Default 0.9. */
  readonly momentum?: number
  /** η: the step's length is at most this share of the block's. Default 0.01. */
  readonly trust?: number
  /** λ of the decay λ·w added to each gradient. Default 0. */
  readonly decay?: number
}

export interface LambOptions {
  /** Step size: a block moves by about this share of its length in one update. Default 0.005. */
  readonly step?: number
  /** Decay of the mean gradient. Default 0.9. */
  readonly beta1?: number
  /** Decay of the mean squared gradient. Default 0.999. */
  readonly beta2?: number
  /** Added to the root in the denominator. Default 1e-6. */
  readonly epsilon?: number
  /** λ of the decay λ·w added to each direction. Default 0. */
  readonly decay?: number
}

const larsOptions = {
  step: { preset: 1, least: 0, above: true },
  momentum: { preset: 0.9, least: 0, below: 1 },
  trust: { preset: 0.01, least: 0, above: true },
  decay: { preset: 0, least: 0 }
} as const

const lambOptions = {
  step: { preset: 0.005, least: 0, above: true },
  beta1: { preset: 0.9, least: 0, below: 1 },
  beta2: { preset: 0.999, least: 0, below: 1 },
  epsilon: { preset: 1e-6, least: 0, above: true },
  decay: { preset: 0, least: 0 }
} as const

/** d = g + λ·w, v ← momentum·v + step·η·(‖w‖/‖d‖)·d, w ← w − v, with g the mean gradient. State: v. */
export function lars(given: LarsOptions): UpdateRule {
  const values = resolveNumbers('rule lars', larsOptions, given)
  const { step, momentum, trust, decay } = values
  return {
    name: 'lars',
    description: describe('lars', values),
    stateLayout: layout => ({ blocks: layout.blocks.map(suffixed('velocity')) }),
    step: (previous, sum, count) => {
      const state: Float32Array[] = []
      const parameters = previous.parameters.map((block, k) => {
        const { length } = block
        const gradient = sum[k]
        const direction = new Float32Array(length)
        for (let i = 0; i < length; i++) direction[i] = gradient[i] / count + decay * block[i]
        const rate = step * trust * ratio(block, direction)
        const before = previous.state[k]
        const velocity = new Float32Array(length)
        const next = new Float32Array(length)
        for (let i = 0; i < length; i++) {
          velocity[i] = momentum * before[i] + rate * direction[i]
          next[i] = block[i] - velocity[i]
        }
        state.push(velocity)
        return next
      })
      return { parameters, state }
    }
  }
}

/**
 * With Adam's direction d = m̂/(√v̂ + ε) + λ·w: w ← w − step·(‖w‖/‖d‖)·d. State: each block's mean m and mean square v, then
 * (1 − β₁^t, 1 − β₂^t) by recurrence.
 */
export function lamb(given: LambOptions): UpdateRule {
  const values = resolveNumbers('rule lamb', lambOptions, given)
  const { step, beta1, beta2, epsilon, decay } = values
  return {
    name: 'lamb',
    description: describe('lamb', values),
    stateLayout: layout => ({
      blocks: [
        ...layout.blocks.flatMap(block => [suffixed('mean')(block), suffixed('square')(block)]),
        { name: 'corrections', length: 2 }
      ]
    }),
    step: (previous, sum, count) => {
      const before = previous.state[2 * sum.length]
      const corrections = Float32Array.of(beta1 * before[0] + (1 - beta1), beta2 * before[1] + (1 - beta2))
      const [first, second] = corrections
      const state: Float32Array[] = []
      const parameters = previous.parameters.map((block, k) => {
        const mean = previous.state[2 * k].slice()
        const square = previous.state[2 * k + 1].slice()
        const gradient = sum[k]
        const direction = new Float32Array(block.length)
        for (let i = 0; i < block.length; i++) {
          const g = gradient[i] / count
          mean[i] = beta1 * mean[i] + (1 - beta1) * g
          square[i] = beta2 * square[i] + (1 - beta2) * g * g
          direction[i] = mean[i] / first / (Math.sqrt(square[i] / second) + epsilon) + decay * block[i]
        }
        state.push(mean, square)
        const rate = step * ratio(block, direction)
        const next = new Float32Array(block.length)
        for (let i = 0; i < next.length; i++) next[i] = block[i] - rate * direction[i]
        return next
      })
      return { parameters, state: [...state, corrections] }
    }
  }
}

/** ‖w‖/‖d‖; 1 where either has no length, so that a block of zeros can leave zero. */
function ratio(block: Float32Array, direction: Float32Array): number {
  const w = norm(block)
  const d = norm(direction)
  return w > 0 && d > 0 ? w / d : 1
}

function norm(block: Float32Array): number {
  let square = 0
  for (let i = 0; i < block.length; i++) square += block[i] * block[i]
  return Math.sqrt(square)
}

function suffixed(suffix: string) {
  return ({ name, length }: Layout['blocks'][number]) => ({ name: `${name}.${suffix}`, length })
}
