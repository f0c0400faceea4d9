/**
 * Mirror descent (Nemirovski and Yudin, 1983; Beck and Teboulle, 2003): w ← argmin_{u∈W} ⟨g, u⟩ + α_j·Breg(u, w), with
 * the Euclidean geometry (projected gradient descent) or the entropic one on the simplex (exponentiated gradient,
 * Kivinen and Warmuth, 1997).
 */
import { copyBlock } from '../../base/memory.js'
import { projectOntoBall } from '../blocks.js'
import { OptionError } from '../errors.js'
import { portableExp } from '../exp.js'
import { describe, resolveOptions } from '../options.js'
import type { Blocks } from '../types.js'
import type { RuleDefinition } from './definition.js'
import { advance, divisor, type ScheduleOptions, scheduleBlock, scheduleOptions } from './schedule.js'

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
          const next = copyBlock(block)
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
