/**
 * Gradient descent with heavy-ball momentum (Polyak, 1964), and with steps scaled to the norm of each block, so that every layer
 * of a deep network learns at its own rate.
 */
import { projectOntoBall } from '../engines/working-content.js'
import { describe, radiusOption, resolveOptions } from '../options.js'
import type { Layout } from '../types.js'
import { type RuleDefinition, type ScalingOptions, scalingBy, scalingOptions, withPureStep } from './definition.js'

/**
 * Steps scaled to the norm of each block, so that every layer of a deep network learns at its own rate: LARS (You, Gitman and
 * Ginsburg, "Large Batch Training of Convolutional Networks", 2017) over momentum, and LAMB (You et al., ICLR 2020,
 * algorithm 2) over Adam. A block is a layer.
 */
export interface LarsOptions extends ScalingOptions {
  /** Step size, before it is scaled to a block. @default 1 */
  readonly step?: number
  /** Share of the velocity kept at each update. @default 0.9 */
  readonly momentum?: number
  /** η: the step's length is at most this share of the block's. @default 0.01 */
  readonly trust?: number
  /** λ of the decay λ·w added to each gradient. @default 0 */
  readonly decay?: number
}

export interface LambOptions extends ScalingOptions {
  /** Step size: a block moves by about this share of its length in one update. @default 0.005 */
  readonly step?: number
  /** Decay of the mean gradient. @default 0.9 */
  readonly beta1?: number
  /** Decay of the mean squared gradient. @default 0.999 */
  readonly beta2?: number
  /** Added to the root in the denominator. @default 1e-6 */
  readonly epsilon?: number
  /** λ of the decay λ·w added to each direction. @default 0 */
  readonly decay?: number
}

const larsOptions = {
  step: { default: 1, min: 0, isMinExcluded: true, help: 'step size, before it is scaled to a block' },
  momentum: { default: 0.9, min: 0, below: 1, help: 'share of the velocity kept at each update' },
  trust: { default: 0.01, min: 0, isMinExcluded: true, help: "step's norm as a share of the block's" },
  decay: { default: 0, min: 0, help: 'λ of the decay λ·w added to each gradient' },
  ...scalingOptions('linear')
} as const

const lambOptions = {
  step: { default: 0.005, min: 0, isMinExcluded: true, help: "step's norm as a share of the block's" },
  beta1: { default: 0.9, min: 0, below: 1, help: 'decay of the mean gradient' },
  beta2: { default: 0.999, min: 0, below: 1, help: 'decay of the mean squared gradient' },
  epsilon: { default: 1e-6, min: 0, isMinExcluded: true, help: 'added to the root in the denominator' },
  decay: { default: 0, min: 0, help: 'λ of the decay λ·w added to each direction' },
  ...scalingOptions('root')
} as const

/** d = g + λ·w, v ← momentum·v + step·η·(‖w‖/‖d‖)·d, w ← w − v, with g the mean gradient. State: v. */
export const lars: RuleDefinition<LarsOptions> = {
  summary: 'LARS: momentum at a rate per layer (You et al., 2017)',
  options: larsOptions,
  isBlockwise: () => true,
  eightBitState: 'blockwise',
  create(given) {
    const values = resolveOptions('rule lars', larsOptions, given)
    const { step, momentum, trust, decay } = values
    const scale = scalingBy('lars', values, 'linear')
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
          const rate = step * scale(count) * trust * ratio(block, direction)
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
}

/**
 * With Adam's direction d = m̂/(√v̂ + ε) + λ·w: w ← w − step·(‖w‖/‖d‖)·d. State: each block's mean m and mean square v, then
 * (1 − β₁^t, 1 − β₂^t) by recurrence.
 */
export const lamb: RuleDefinition<LambOptions> = {
  summary: 'LAMB: Adam at a rate per layer (You et al., 2020)',
  options: lambOptions,
  isBlockwise: () => true,
  eightBitState: 'blockwise',
  create(given) {
    const values = resolveOptions('rule lamb', lambOptions, given)
    const { step, beta1, beta2, epsilon, decay } = values
    const scale = scalingBy('lamb', values, 'root')
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
          const rate = step * scale(count) * ratio(block, direction)
          const next = new Float32Array(block.length)
          for (let i = 0; i < next.length; i++) next[i] = block[i] - rate * direction[i]
          return next
        })
        return { parameters, state: [...state, corrections] }
      }
    }
  }
}

/** ‖w‖/‖d‖; 1 if either is zero, so that a block of zeros can leave zero. */
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

export interface MomentumOptions extends ScalingOptions {
  /** Step size for the mean gradient. @default 0.03 */
  readonly step?: number
  /** Share of the velocity kept at each update. @default 0.9 */
  readonly momentum?: number
  /** Radius of the Euclidean ball that parameters are projected onto. @default none */
  readonly radius?: number
}

const options = {
  step: { default: 0.03, min: 0, isMinExcluded: true, help: 'step size for the mean gradient (0.001 for regression)' },
  momentum: { default: 0.9, min: 0, below: 1, help: 'share of the velocity kept at each update' },
  ...scalingOptions('linear'),
  ...radiusOption
} as const

/** v ← momentum·v + g, w ← Π_W(w − step·v), where g is the mean gradient; with `reference`, times the factor of its batch. State: v, shaped like the parameters. */
export const momentum: RuleDefinition<MomentumOptions> = {
  summary: 'gradient descent with heavy-ball momentum (Polyak, 1964)',
  options,
  isBlockwise: ({ radius }) => radius === undefined,
  eightBitState: 'elementwise',
  create(given) {
    const values = resolveOptions('rule momentum', options, given)
    const scale = scalingBy('momentum', values, 'linear')
    return withPureStep({
      name: 'momentum',
      description: describe('momentum', values),
      stateLayout: layout => ({
        blocks: layout.blocks.map(({ name, length }) => ({ name: `${name}.velocity`, length }))
      }),
      stepInPlace: ({ parameters, state }, sum, count) => {
        const divisor = count / scale(count)
        for (const [k, block] of parameters.entries()) stepBlock(block, state[k], sum[k], divisor, values)
        projectOntoBall(parameters, values.radius)
      }
    })
  }
}

function stepBlock(
  block: Float32Array,
  velocity: Float32Array,
  gradient: Float32Array,
  divisor: number,
  { momentum, step }: { readonly momentum: number; readonly step: number }
): void {
  for (let i = 0; i < block.length; i++) {
    const v = Math.fround(momentum * velocity[i] + gradient[i] / divisor)
    velocity[i] = v
    block[i] -= step * v
  }
}
