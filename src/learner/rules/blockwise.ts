/**
 * Rules that may be stepped a block at a time: then a network's upper layers can be updated while its lower ones still run.
 * Such a rule gives the same bits either way, because nothing in its step looks at two blocks at once.
 */
import type { RuleSpec } from './index.js'

/** Whether that rule, with those options, steps each block on its own. */
export function isBlockwise(spec: RuleSpec): boolean {
  switch (spec.name) {
    case 'lamb':
    case 'lars':
      return true
    case 'momentum':
    case 'adam':
    case 'dual-averaging':
      return spec.radius === undefined
    case 'mirror-descent':
      return spec.radius === undefined && spec.geometry !== 'entropic'
    case 'adagrad':
      return spec.radius === undefined && spec.maxLossDecrease === undefined
    default:
      // A program's own rule may look at all of them.
      return false
  }
}
