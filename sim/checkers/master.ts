/** The property of MaWo-DMB: how many inputs an update drops (Dekel et al., "Robust Distributed Online Prediction"). */
import { maxDelayOf } from '../regret/bounds.js'
import { Violation } from '../result.js'
import type { CheckedRun, Invariant } from './invariant.js'

/**
 * A batch has no more gradients than its predictor has predicted inputs, and at most M·(T + t_u + 2·t_c) fewer. Each update
 * drops at most this number of inputs: they are predicted with a predictor whose batch does not contain them. t_c is the time of a
 * message between the master and the farthest worker. Inputs come one at a time, so unless all times are whole numbers of
 * intervals there may be one more at each node.
 */
export class Dropped implements Invariant {
  readonly #max: number
  /** Number of inputs that were predicted with a predictor, by its number of updates. */
  readonly #served: number[] = []
  /** Gradients in the batches. */
  readonly #used: number[] = []

  constructor(max: number) {
    this.#max = max
  }

  served(updates: number): void {
    this.#served[updates] = (this.#served[updates] ?? 0) + 1
    this.#check(updates)
  }

  updated(updates: number, count: number): void {
    this.#used[updates] = count
    this.#check(updates)
  }

  #check(updates: number): void {
    const [served, used] = [this.#served[updates] ?? 0, this.#used[updates]]
    if (used === undefined || (used <= served && served - used <= this.#max)) return
    const limit = used > served ? 'more than there are' : `more than ${this.#max} are dropped`
    throw new Violation(
      'dropped',
      `${used} of ${served} inputs predicted with the predictor of ${updates} updates are in its batch: ${limit}`
    )
  }
}

/** @returns nothing where the claim does not hold: under faults, and with unbounded delays */
export function droppedOf({ scenario, topology, faults }: CheckedRun): Dropped[] {
  const { algorithm, nodes, interval, period, updateTime, speedSpread, phases } = scenario
  const delay = topology.height * maxDelayOf(scenario)
  const isCalm = faults.length === 0 && speedSpread === 0 && topology.links === undefined
  if (algorithm !== 'mawo' || !isCalm || !Number.isFinite(delay)) return []
  const intervals = (period + updateTime + 2 * delay) / interval
  const times = [period, updateTime, scenario.latency, interval]
  const isWhole = phases === 'aligned' && times.every(time => Number.isInteger(time / interval))
  return [new Dropped(nodes * (isWhole ? intervals : Math.floor(intervals + 1e-9) + 1))]
}
