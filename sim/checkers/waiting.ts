/**
 * Property 14 (waiting): a node waits only for a better predictor that exists, and that a neighbour of an open session has announced
 * or repeated within `WAIT_PERIODS`. It holds sums back only while it waits, or while a neighbour lacks its predictor, to which it has
 * sent a frame within `PUSH_PERIODS`.
 */
import { compareIds, formatId, isAnnouncement, PUSH_PERIODS, sameId, WAIT_PERIODS } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

export class Waiting implements Invariant {
  readonly #computed = new Set<string>()
  /** The period of each node in which the last announcement came over an edge. */
  readonly #heard = new WeakMap<CheckedNode, Map<number, number>>()

  /** The period of each node in which the last frame left over an edge. */
  readonly #sent = new WeakMap<CheckedNode, Map<number, number>>()

  started(node: CheckedNode): void {
    this.#heard.set(node, new Map())
    this.#sent.set(node, new Map())
  }

  predictorChanged(_node: CheckedNode, { cause, predictor }: PredictorChange): void {
    if (cause === 'updated') this.#computed.add(formatId(predictor.id))
  }

  frameReceived(node: CheckedNode, edge: number, frame: Uint8Array): void {
    if (isAnnouncement(frame)) this.#heard.get(node)?.set(edge, node.period)
  }

  frameSent(node: CheckedNode, edge: number): void {
    this.#sent.get(node)?.set(edge, node.period)
  }

  disconnected(node: CheckedNode, edge: number): void {
    this.#heard.get(node)?.delete(edge)
    this.#sent.get(node)?.delete(edge)
  }

  afterEvent(checked: CheckedNode): void {
    const { node, origin, period } = checked
    const { expected } = node
    if (expected === undefined) {
      if (node.holdsSums) this.#checkSent(checked)
      return
    }
    const key = formatId(expected)
    if (compareIds(expected, node.predictor.id) <= 0)
      throw new Violation('waiting', `${origin} waits for ${key}, which is not better than its predictor`)
    if (!this.#computed.has(key))
      throw new Violation('waiting', `${origin} waits for ${key}, which no node has computed`)
    const heard = Math.max(Number.NEGATIVE_INFINITY, ...(this.#heard.get(checked)?.values() ?? []))
    if (period - heard > WAIT_PERIODS)
      throw new Violation('waiting', `${origin} waits for ${key}, which was announced ${period - heard} periods ago`)
  }

  #checkSent(checked: CheckedNode): void {
    const { node, origin, period } = checked
    for (const [edge, sent] of this.#sent.get(checked) ?? []) {
      const held = node.neighbourPredictor(edge)
      const lacksIt = held === undefined || !sameId(held, node.predictor.id)
      if (lacksIt && period - sent <= PUSH_PERIODS) return
    }
    throw new Violation('waiting', `${origin} holds sums back, although no predictor is on its way to a neighbour`)
  }
}
