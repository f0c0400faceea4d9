/** Rules that are written as a step over their own memory, which a param-server takes as it is: the pure step works on copies. */
import type { Blocks, UpdateRule } from '../types.js'

type InPlaceRule = Omit<UpdateRule, 'step'> & Required<Pick<UpdateRule, 'stepInPlace'>>

export function withPureStep(rule: InPlaceRule): UpdateRule {
  return {
    ...rule,
    step(previous, sum, count, updates) {
      const next = { parameters: copied(previous.parameters), state: copied(previous.state) }
      rule.stepInPlace(next, sum, count, updates)
      return next
    }
  }
}

function copied(blocks: Blocks): Float32Array[] {
  return blocks.map(block => block.slice())
}
