/**
 * The update rules of the paper, dual averaging and mirror descent, and their schedule of step sizes.
 * Dual averaging (Nesterov, 2009; Xiao, JMLR 2010; the rule of the paper's experiments): all gradients so far, equally weighted,
 * against one growing regulariser, w ← argmin_{u∈W} ⟨Σg, u⟩ + α_j·½‖u‖².
 */

import { portableExp } from '../../numeric/exp.js'
import { projectOntoBall } from '../engines/working-content.js'
import { describe, OptionError, type Resolved, radiusOption, resolveOptions } from '../options.js'
import type { Blocks } from '../types.js'
import type { RuleDefinition } from './definition.js'

/**
 * The paper's step-size schedule α_j = L + (σ/D)·√(j/b), in a form that counts gradients instead of batches. A batch on a
 * real network has at least b gradients, sometimes several times b, and every gradient should have the same weight. With M the
 * largest batch so far and N the number of gradients so far, M·α = L·M + (σ/D)·√N. For batches of exactly b that is the
 * paper's schedule (M = b, N = j·b), and a larger batch never makes a step longer than 1/L.
 */
export interface ScheduleOptions {
  /** Smoothness L of the loss, in loss per squared parameter length. @default 1 */
  readonly L?: number
  /** Standard deviation σ of one input's gradient. @default 1 */
  readonly sigma?: number
  /** Size D of the set that holds the optimum (½‖w*‖² ≤ D²). @default 3 */
  readonly D?: number
  /** Radius of the Euclidean ball that parameters are projected onto. @default none */
  readonly radius?: number
}

/** The options of the rules that use the schedule. */
const scheduleOptions = {
  L: { default: 1, min: 0, isMinExcluded: true, help: 'smoothness of the loss (64 for regression)' },
  sigma: { default: 1, min: 0, help: "standard deviation of one input's gradient" },
  D: { default: 3, min: 0, isMinExcluded: true, help: 'size of the set that holds the optimum' },
  ...radiusOption
} as const

type ScheduleValues = Resolved<typeof scheduleOptions>

/** The schedule's part of a rule's state: N split in two so that float32 holds it exactly up to 2^44, and M. */
const scheduleBlock = { name: 'schedule', length: 3 } as const
const UNIT = 2 ** 20

/** The state after a batch of `count` gradients. */
function advance(block: Float32Array, count: number): Float32Array {
  const low = block[1] + count
  const carried = Math.floor(low / UNIT)
  return Float32Array.of(block[0] + carried, low - carried * UNIT, Math.max(block[2], count))
}

/** M·α = L·M + (σ/D)·√N: the divisor of a sum (not a mean) of gradients. */
function divisor(block: Float32Array, { L, sigma, D }: ScheduleValues): number {
  return L * block[2] + (sigma / D) * Math.sqrt(block[0] * UNIT + block[1])
}

/** w ← Π_W(−Σ(all gradients) / (L·M + (σ/D)·√N)), see schedule.ts. State: the gradient sum z, and the schedule's counters. */
export const dualAveraging: RuleDefinition<ScheduleOptions> = {
  summary: "dual averaging, the rule of the paper's experiments (Xiao, 2010)",
  options: scheduleOptions,
  isDual: true,
  isBlockwise: ({ radius }) => radius === undefined,
  create(given) {
    const values = resolveOptions('rule dual-averaging', scheduleOptions, given)
    return {
      name: 'dual-averaging',
      description: describe('dual-averaging', values),
      stateLayout: layout => ({
        blocks: [...layout.blocks.map(({ name, length }) => ({ name: `${name}.gradients`, length })), scheduleBlock]
      }),
      step: (previous, sum, count) => {
        const schedule = advance(previous.state[sum.length], count)
        const divideBy = divisor(schedule, values)
        const gradients: Float32Array[] = []
        const parameters = sum.map((block, k) => {
          const before = previous.state[k]
          const all = new Float32Array(block.length)
          const next = new Float32Array(block.length)
          for (let i = 0; i < next.length; i++) {
            all[i] = before[i] + block[i]
            next[i] = -all[i] / divideBy
          }
          gradients.push(all)
          return next
        })
        projectOntoBall(parameters, values.radius)
        return { parameters, state: [...gradients, schedule] }
      }
    }
  }
}

/**
 * Mirror descent (Nemirovski and Yudin, 1983; Beck and Teboulle, 2003): w ← argmin_{u∈W} ⟨g, u⟩ + α_j·Breg(u, w), with
 * the Euclidean geometry (projected gradient descent) or the entropic one on the simplex (exponentiated gradient,
 * Kivinen and Warmuth, 1997).
 */
export interface MirrorDescentOptions extends ScheduleOptions {
  /**
   * `entropic`: parameters stay on the probability simplex over all blocks together (w ≥ 0, Σw = 1), all-zero parameters stand
   * for its centre, and a radius is not allowed. @default 'euclidean'
   */
  readonly geometry?: 'euclidean' | 'entropic'
}

const options = {
  geometry: {
    default: 'euclidean',
    choices: ['euclidean', 'entropic'],
    help: 'entropic: exponentiated gradient on the simplex'
  },
  ...scheduleOptions
} as const

/** Smallest weight of the entropic geometry. A weight of zero could never grow again. */
const MIN_WEIGHT = 1e-30

/** State: the schedule's counters. Step: the batch's gradient sum divided by L·M + (σ/D)·√N, see schedule.ts. */
export const mirrorDescent: RuleDefinition<MirrorDescentOptions> = {
  summary: 'mirror descent: projected or exponentiated gradient (Beck and Teboulle, 2003)',
  options,
  isBlockwise: ({ radius, geometry }) => radius === undefined && geometry !== 'entropic',
  create(given) {
    const values = resolveOptions('rule mirror-descent', options, given)
    const { geometry } = values
    if (geometry === 'entropic' && values.radius !== undefined)
      throw new OptionError('rule mirror-descent: the entropic geometry stays on the simplex: remove radius')
    return {
      name: 'mirror-descent',
      description: describe('mirror-descent', values),
      stateLayout: () => ({ blocks: [scheduleBlock] }),
      isLocal: values.radius === undefined && geometry !== 'entropic',
      step: (previous, sum, count) => {
        const schedule = advance(previous.state[0], count)
        const divideBy = divisor(schedule, values)
        if (geometry === 'entropic')
          return { parameters: exponentiated(previous.parameters, sum, divideBy), state: [schedule] }
        const parameters = previous.parameters.map((block, k) => {
          const gradient = sum[k]
          const next = block.slice()
          for (let i = 0; i < next.length; i++) if (gradient[i] !== 0) next[i] -= gradient[i] / divideBy
          return next
        })
        projectOntoBall(parameters, values.radius)
        return { parameters, state: [schedule] }
      }
    }
  }
}

/** w_i ∝ w_i·e^(−g_i/α), with the exponents shifted so that the largest is 0. */
function exponentiated(parameters: Blocks, sum: Blocks, divideBy: number): Float32Array[] {
  const atStart = parameters.every(block => block.every(w => w === 0))
  let least = Infinity
  for (const block of sum) for (let i = 0; i < block.length; i++) if (block[i] < least) least = block[i]
  const raw = parameters.map((block, k) =>
    Float64Array.from(block, (w, i) => (atStart ? 1 : w) * portableExp((least - sum[k][i]) / divideBy))
  )
  let total = 0
  for (const block of raw) for (let i = 0; i < block.length; i++) total += block[i]
  return raw.map(block => Float32Array.from(block, w => Math.max(MIN_WEIGHT, w / total)))
}
