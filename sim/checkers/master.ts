/** Properties of MaWo-DMB and DMB: how many inputs an update drops, who makes updates, and whose gradients a batch has. */
import { formatId } from '../../src/admb/index.js'
import { maxDelayOf } from '../regret/bounds.js'
import { Violation } from '../result.js'
import { type GradientAccounts, runOf } from './accounts.js'
import type { CheckedNode, CheckedRun, Invariant, PredictorChange } from './invariant.js'

/**
 * Dekel et al., "Robust Distributed Online Prediction": a batch has no more gradients than its predictor has predicted inputs, and at most M·(T + t_u + 2·t_c) fewer. Each update
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

/** Only a node that holds itself for the master makes updates. */
export class OnlyMaster implements Invariant {
  predictorChanged({ origin, master }: CheckedNode, { cause, predictor }: PredictorChange): void {
    if (cause === 'updated' && master !== 'self')
      throw new Violation('master', `${origin} made ${formatId(predictor.id)}, and is not the master`)
  }
}

/**
 * DMB: a batch has b/k gradients of each of the k peers in the last batch, except of those that have left, or that expect no further
 * inputs. What is left when all inputs are over is excepted.
 */
export class Shares implements Invariant {
  readonly #batch: number
  readonly #accounts: GradientAccounts
  /** Runs of each peer. */
  readonly #runs = new Map<string, string[]>()
  readonly #ended = new Set<string>()

  /** @param accounts checked before this invariant */
  constructor(batch: number, accounts: GradientAccounts) {
    this.#batch = batch
    this.#accounts = accounts
  }

  started(checked: CheckedNode): void {
    this.#runs.set(checked.origin, [...(this.#runs.get(checked.origin) ?? []), runOf(checked)])
  }

  ended({ origin }: CheckedNode, peer = origin): void {
    for (const run of this.#runs.get(peer) ?? []) this.#ended.add(run)
  }

  predictorChanged({ usesRemainder }: CheckedNode, change: PredictorChange): void {
    if (change.cause !== 'updated' || usesRemainder) return
    const members = this.#accounts.gradientsIn(change.parent.id)
    const gradients = this.#accounts.gradientsIn(change.predictor.id)
    const share = this.#batch / members.size
    for (const [peer, runs] of this.#runs) {
      const member = runs.find(run => members.has(run))
      if (member === undefined || this.#ended.has(member)) continue
      const count = runs.reduce((sum, run) => sum + (gradients.get(run) ?? 0), 0)
      if (count < share)
        throw new Violation('share', `${formatId(change.predictor.id)} has ${count} of ${share} gradients of ${peer}`)
    }
  }
}
