/** Withholding: a neighbour that takes frames and acknowledges none of them is refused. */

import { isAnnouncement, isFragment, isVoucher } from '../../src/admb/index.js'
import { isProof } from '../../src/admb/trust/equivocation.js'
import { Reader } from '../../src/admb/wire/bytes.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant } from './invariant.js'

/** More frames than a correct node can send before it acknowledges what it has taken. */
const MAX_IGNORING = 6
/** Bytes before the numbers of a frame's head. */
const PREFIX = 2

interface Taken {
  /** Sequence number of the last of its frames that the neighbour has taken. */
  sequence: number
  /** The same when the neighbour's last frame arrived, after which it composes the next one. */
  before: number
  /** Sequence number of the neighbour's last frame: others have arrived twice or late, and nodes ignore them. */
  last: number
  /** Frames in a row that have acknowledged less. */
  ignoring: number
}

export class Withholding implements Invariant {
  readonly #edges = new WeakMap<CheckedNode, Map<number, Taken>>()

  started(checked: CheckedNode): void {
    this.#edges.set(checked, new Map())
  }

  connected(checked: CheckedNode, edge: number): void {
    this.#edges.get(checked)?.set(edge, { sequence: 0, before: 0, last: 0, ignoring: 0 })
  }

  framesTaken(checked: CheckedNode, edge: number, sequence: number): void {
    const taken = this.#edges.get(checked)?.get(edge)
    if (taken) taken.sequence = Math.max(taken.sequence, sequence)
  }

  frameRefused(checked: CheckedNode, edge: number): void {
    this.#edges.get(checked)?.delete(edge)
  }

  frameReceived(checked: CheckedNode, edge: number, frame: Uint8Array): void {
    const taken = this.#edges.get(checked)?.get(edge)
    if (taken === undefined || isFragment(frame) || isAnnouncement(frame) || isVoucher(frame) || isProof(frame)) return
    const input = new Reader(frame)
    for (let i = 0; i < PREFIX; i++) input.byte()
    if (input.uint() !== checked.edges.get(edge)?.session) return
    const sequence = input.uint()
    if (sequence <= taken.last) return
    taken.last = sequence
    taken.ignoring = input.uint() >= taken.before ? 0 : taken.ignoring + 1
    taken.before = taken.sequence
    if (taken.ignoring > MAX_IGNORING)
      throw new Violation(
        'withholding',
        `${checked.origin} keeps ${checked.edges.get(edge)?.peer}, which has ignored ${taken.ignoring} frames`
      )
  }
}
