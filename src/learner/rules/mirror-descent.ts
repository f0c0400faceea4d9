/**
 * Mirror descent (Nemirovski and Yudin, 1983; Beck and Teboulle, 2003): w ← argmin_{u∈W} ⟨g, u⟩ + α_j·Breg(u, w), with
 * the Euclidean geometry (projected gradient descent) or the entropic one on the simplex (exponentiated gradient,
 * Kivinen and Warmuth, 1997).
 */
import { projectOntoBall } from '../blocks.js'
import { OptionError } from '../errors.js'
import { portableExp } from '../exp.js'
import { describe } from '../options.js'
import type { Blocks, UpdateRule } from '../types.js'
import { advance, divisor, type ScheduleOptions, scheduleBlock, scheduleValues } from './schedule.js'

export interface MirrorDescentOptions extends ScheduleOptions {
  /**
   * `euclidean` (default), or `entropic`: parameters stay on the probability simplex over all blocks together
   * (w ≥ 0, Σw = 1), all-zero parameters stand for its centre, and a radius is not allowed.
   */
  readonly geometry?: 'euclidean' | 'entropic'
}

/** Keeps every weight able to grow again: one that reached zero never could. */
const SMALLEST = 1e-30

/** State: the schedule's counters. Step: the batch's gradient sum divided by L·M + (σ/D)·√N, see schedule.ts. */
export function mirrorDescent({ geometry = 'euclidean', ...given }: MirrorDescentOptions): UpdateRule {
  const values = scheduleValues('rule mirror-descent', given)
  if (geometry !== 'euclidean' && geometry !== 'entropic')
    throw new OptionError(`rule mirror-descent: geometry must be euclidean or entropic, not ${String(geometry)}`)
  if (geometry === 'entropic' && values.radius !== undefined)
    throw new OptionError('rule mirror-descent: the entropic geometry stays on the simplex: leave radius out')
  return {
    name: 'mirror-descent',
    description: describe('mirror-descent', { geometry, ...values }),
    stateLayout: () => ({ blocks: [scheduleBlock] }),
    step: (previous, sum, count) => {
      const schedule = advance(previous.state[0], count)
      const divideBy = divisor(schedule, values)
      if (geometry === 'entropic')
        return { parameters: exponentiated(previous.parameters, sum, divideBy), state: [schedule] }
      const parameters = previous.parameters.map((block, k) => {
        const gradient = sum[k]
        const next = new Float32Array(block.length)
        for (let i = 0; i < next.length; i++) next[i] = block[i] - gradient[i] / divideBy
        return next
      })
      projectOntoBall(parameters, values.radius)
      return { parameters, state: [schedule] }
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
  return raw.map(block => Float32Array.from(block, w => Math.max(SMALLEST, w / total)))
}
