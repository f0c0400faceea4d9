/**
 * Rules that may be stepped a block at a time: then a network's upper layers can be updated while its lower ones still run.
 * Such a rule gives the same bits either way, because nothing in its step looks at two blocks at once.
 */
import type { Layout, UpdateRule } from '../types.js'
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
      return spec.radius === undefined && spec.promise === undefined
    default:
      // A program's own rule may look at all of them.
      return false
  }
}

/**
 * Which blocks of the rule's state for the whole layout belong to each block of parameters. Counters, which all blocks have
 * in common, are in every list.
 */
export function statePlaces(rule: UpdateRule, layout: Layout): readonly (readonly number[])[] {
  const whole = rule.stateLayout(layout).blocks.map(({ name }) => name)
  return layout.blocks.map(block => rule.stateLayout({ blocks: [block] }).blocks.map(({ name }) => whole.indexOf(name)))
}
