/**
 * Reactions to drift that peers agree on. A peer whose detector alarms counts its next inputs as votes, in a block of their own of
 * its gradient sums. Votes are therefore summed, carried over and counted once like gradients. An update in which more than half of
 * the gradients are votes, after one in which they are not, reduces the age of the rule and the average. The block `drift` of the
 * predictor contains the age, so every node that replays the batch computes the same bits.
 */

import { copyingLast } from '../averaging.js'
import { OptionError } from '../errors.js'
import type { Averaging, Blocks, Layout, UpdateRule } from '../types.js'
import { type Drift, SAME_ALARM } from './detector.js'

export const driftActions = ['raise-step', 'forget'] as const
/**
 * `raise-step`: a quarter of the past gradients count, so the step size doubles. `forget`: the rule and the average restart from
 * the current weights.
 */
export type DriftAction = (typeof driftActions)[number]

/** Share of its age that rule and average keep. */
export const KEPT_AGE: Readonly<Record<DriftAction, number>> = { 'raise-step': 0.25, forget: 0 }

/** Whether most gradients of the last update were votes, and the update at which the average is as old as 0, in two digits. */
export const driftBlock: Layout['blocks'][number] = { name: 'drift', length: 3 }
const DIGIT = 2 ** 20

/** The update that counts as the first one. */
export function birthOf([, high, low]: Float32Array): number {
  return high * DIGIT + low
}

/** @param birth from `birthOf` or `rejuvenated` */
export function driftState(isDrifting: boolean, birth: number): Float32Array {
  const high = Math.floor(birth / DIGIT)
  return Float32Array.of(Number(isDrifting), high, birth - high * DIGIT)
}

/** The later birth after a drift at an update. */
export function rejuvenated(birth: number, updates: number, action: DriftAction): number {
  return updates - Math.floor(KEPT_AGE[action] * (updates - birth))
}

/** The rule for parameters whose last block is `driftBlock`. @throws OptionError if its state has no age */
export function reactingRule(
  rule: UpdateRule,
  aged: ((state: Blocks, share: number) => Float32Array[]) | undefined,
  action: DriftAction
): UpdateRule {
  if (aged === undefined) {
    throw new OptionError(
      `rule ${rule.name} does not shorten its steps with time, so it cannot react to drift: remove --on-drift, or use adagrad or mirror-descent`
    )
  }
  return {
    name: rule.name,
    description: `${rule.description} on-drift ${action}`,
    stateLayout: ({ blocks }) => rule.stateLayout({ blocks: blocks.slice(0, -1) }),
    isLocal: rule.isLocal,
    leastWeight: rule.leastWeight,
    step(previous, sum, count, updates) {
      const last = sum.length - 1
      const before = previous.parameters[last]
      const isDrifting = 2 * sum[last][0] > count
      const reacts = isDrifting && before[0] === 0
      const birth = reacts ? rejuvenated(birthOf(before), updates, action) : birthOf(before)
      const state = reacts ? aged(previous.state, KEPT_AGE[action]) : previous.state
      const parameters = previous.parameters.slice(0, -1)
      const next = rule.step({ parameters, state }, sum.slice(0, -1), count, updates - birth)
      return { parameters: [...next.parameters, driftState(isDrifting, birth)], state: next.state }
    }
  }
}

/** The average for such parameters. */
export function reactingAveraging(averaging: Averaging): Averaging {
  return copyingLast(averaging, (drift, updates) => updates - birthOf(drift))
}

/** Decides which inputs of a learner vote: those after an alarm. */
export class DriftVote {
  #alarms = 0
  #until = 0

  /** @param inputs number of inputs before the next one */
  isVoting({ alarms }: Drift, inputs: number): boolean {
    if (alarms > this.#alarms) this.#until = inputs + SAME_ALARM
    this.#alarms = alarms
    return inputs < this.#until
  }
}
