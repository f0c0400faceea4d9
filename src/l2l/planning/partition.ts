/**
 * Bytes of a weight by rule and level of partition, as in Table 5 of Gusak et al., "Survey on Large Scale Neural Network Training"
 * (2022), from the arrays that a run allocates.
 */
import { type AveragingSpec, createRule, type RuleSpec } from '../../learning/index.js'
import { layoutOf } from '../../nn/blocks.js'
import type { Model } from '../../nn/types.js'
import { hostBytes } from '../training/param-server.js'
import { ZERO_LEVELS } from '../training/partition.js'

/** Rules with states of different sizes. */
const RULES = [
  { name: 'mirror-descent' },
  { name: 'momentum' },
  { name: 'adagrad' },
  { name: 'lars' },
  { name: 'adam' },
  { name: 'adamw' },
  { name: 'lamb' },
  { name: 'momentum', bits: 8 },
  { name: 'adam', bits: 8 }
] as const satisfies readonly RuleSpec[]

export interface PartitionRow {
  /** The rule, with its options. */
  readonly rule: string
  /** Bytes of its state for each weight. */
  readonly state: number
  /** Bytes of weights, average, state and gradients for each weight, on the host with the most, at the levels 0 to 3. */
  readonly bytes: readonly number[]
}

/** @param threads of the parameter server */
export function partitionTable(model: Model, averaging: AveragingSpec, threads: number, hosts: number): PartitionRow[] {
  const layout = layoutOf(model)
  const sum = (blocks: readonly { readonly length: number }[]) => blocks.reduce((all, { length }) => all + length, 0)
  const weights = sum(layout.blocks)
  return RULES.map(rule => ({
    rule: Object.values(rule).join(',bits='),
    state: (4 * sum(createRule(rule, layout).stateLayout(layout).blocks)) / weights,
    bytes: ([0, ...ZERO_LEVELS] as const).map(
      level => hostBytes({ model, rule, averaging, threads }, level, hosts) / weights
    )
  }))
}
