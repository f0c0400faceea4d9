/**
 * Delayed parameter update (Ren et al., "ZeRO-Offload", USENIX ATC 2021, section 5.2): the parameters are one update behind, so
 * that the next step can start while the last update is computed. The delay is always one update, so a replay has the same bits.
 */
import { copyBlock } from '../../base/memory.js'
import type { UpdateRule } from '../types.js'

/** State: that of the rule, and then the parameters after its last update. */
export function delayed(rule: UpdateRule): UpdateRule {
  return {
    name: rule.name,
    description: rule.description.replace(/\)$/, ',delay=1)'),
    stateLayout: layout => {
      const ahead = layout.blocks.map(({ name, length }) => ({ name: `${name}.ahead`, length }))
      return { blocks: [...rule.stateLayout(layout).blocks, ...ahead] }
    },
    step(previous, sum, count, updates, contributors) {
      const own = previous.state.length - sum.length
      // Before the first update, both are the initial parameters.
      const parameters = (updates === 0 ? previous.parameters : previous.state.slice(own)).map(copyBlock)
      const next = rule.step({ parameters, state: previous.state.slice(0, own) }, sum, count, updates, contributors)
      return { parameters, state: [...next.state, ...next.parameters] }
    }
  }
}
