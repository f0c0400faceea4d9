/**
 * Dual averaging (Nesterov, 2009; Xiao, JMLR 2010; the rule of the paper's experiments): all gradients so far, equally weighted,
 * against one growing regulariser, w ← argmin_{u∈W} ⟨Σg, u⟩ + α_j·½‖u‖².
 */
import { newBlock } from '../../base/memory.js'
import { projectOntoBall } from '../blocks.js'
import { describe, resolveOptions } from '../options.js'
import type { RuleDefinition } from './definition.js'
import { advance, divisor, type ScheduleOptions, scheduleBlock, scheduleOptions } from './schedule.js'

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
          const all = newBlock(block.length)
          const next = newBlock(block.length)
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
