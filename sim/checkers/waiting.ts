/**
 * Property 14 (waiting): a node waits only for a better predictor that exists, and that a neighbour of an open session has announced
 * or repeated within `WAIT_PERIODS`.
 */
import { compareIds, formatId, isAnnouncement, WAIT_PERIODS } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

export class Waiting implements Invariant {
  readonly #computed = new Set<string>()
  /** The period of each node in which the last announcement came over an edge. */
  readonly #heard = new WeakMap<CheckedNode, Map<number, number>>()

  started(node: CheckedNode): void {
    this.#heard.set(node, new Map())
  }

  predictorChanged(_node: CheckedNode, { cause, predictor }: PredictorChange): void {
    if (cause === 'updated') this.#computed.add(formatId(predictor.id))
  }

  frameReceived(node: CheckedNode, edge: number, frame: Uint8Array): void {
    if (isAnnouncement(frame)) this.#heard.get(node)?.set(edge, node.period)
  }

  disconnected(node: CheckedNode, edge: number): void {
    this.#heard.get(node)?.delete(edge)
  }

  afterEvent(checked: CheckedNode): void {
    const { node, origin, period } = checked
    const { expected } = node
    if (expected === undefined) return
    const key = formatId(expected)
    if (compareIds(expected, node.predictor.id) <= 0)
      throw new Violation('waiting', `${origin} waits for ${key}, which is not better than its predictor`)
    if (!this.#computed.has(key))
      throw new Violation('waiting', `${origin} waits for ${key}, which no node has computed`)
    const heard = Math.max(Number.NEGATIVE_INFINITY, ...(this.#heard.get(checked)?.values() ?? []))
    if (period - heard > WAIT_PERIODS)
      throw new Violation('waiting', `${origin} waits for ${key}, which was announced ${period - heard} periods ago`)
  }
}
