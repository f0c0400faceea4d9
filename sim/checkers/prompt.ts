/**
 * Property "prompt", in runs without faults and with a constant delay: own gradients do not wait forever. A neighbour that holds the
 * node's predictor receives a sum with them within `MAX_PACE` periods, and a round trip for the acknowledgement of earlier sums,
 * unless the node holds sums back.
 */
import { hasSum, isAnnouncement, isFragment, MAX_PACE, sameId } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant } from './invariant.js'

interface Sent {
  /** Since when a sum could be sent, or the last one has left. */
  period: number
  /** Own gradients in it. */
  own: number
}

export class Prompt implements Invariant {
  readonly #most: number
  readonly #sent = new WeakMap<CheckedNode, Map<number, Sent>>()

  /** @param roundTrip in periods */
  constructor(roundTrip: number) {
    this.#most = MAX_PACE + Math.ceil(roundTrip) + 2
  }

  started(checked: CheckedNode): void {
    this.#sent.set(checked, new Map())
  }

  connected(checked: CheckedNode, edge: number): void {
    this.#sent.get(checked)?.set(edge, { period: checked.period, own: 0 })
  }

  disconnected(checked: CheckedNode, edge: number): void {
    this.#sent.get(checked)?.delete(edge)
  }

  predictorChanged(checked: CheckedNode): void {
    for (const sent of this.#sent.get(checked)?.values() ?? []) {
      sent.period = checked.period
      sent.own = 0
    }
  }

  frameSent(checked: CheckedNode, edge: number, frame: Uint8Array): void {
    if (isAnnouncement(frame) || isFragment(frame) || !hasSum(frame)) return
    this.#sent.get(checked)?.set(edge, { period: checked.period, own: checked.node.ownGradients })
  }

  /** What became due is sent after the tick, so that the next tick checks it. */
  ticked(checked: CheckedNode): void {
    const { node, origin, period } = checked
    for (const [edge, sent] of this.#sent.get(checked) ?? []) {
      const held = node.neighbourPredictor(edge)
      if (node.holdsSums || held === undefined || !sameId(held, node.predictor.id)) sent.period = period
      const waiting = period - sent.period
      if (node.ownGradients > sent.own && waiting > this.#most)
        throw new Violation('prompt', `${origin} has held back own gradients from a neighbour for ${waiting} periods`)
    }
  }
}
