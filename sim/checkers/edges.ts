/** Properties of edges: 5 (no echo), 6 (idempotence) and 7 (edge monotone), acceptance of valid frames, and withholding. */
import {
  formatId,
  isAnnouncement,
  isFragment,
  isVoucher,
  type Predictor,
  type PredictorId,
  sameId
} from '../../src/admb/index.js'
import { isProof } from '../../src/admb/trust/equivocation.js'
import { Reader } from '../../src/admb/wire/bytes.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

/** No node holds a sum that contains its own gradients, of any of its runs. */
export class NoEcho implements Invariant {
  frameReceived(checked: CheckedNode, edge: number): void {
    const { origin } = checked
    if (checked.neighbourSum(edge)?.contributors.some(contributor => contributor.origin === origin))
      throw new Violation('no echo', `the sum that ${origin} holds from ${peerOf(checked, edge)} contains its own`)
  }
}

/** A duplicate of a frame has no effect, immediately or after later frames. */
export class Idempotence implements Invariant {
  /** The last frame of each edge of each node, with its session. */
  readonly #last = new WeakMap<CheckedNode, Map<number, { readonly frame: Uint8Array; readonly session: number }>>()

  frameReceived(checked: CheckedNode, edge: number, frame: Uint8Array): void {
    const session = checked.edges.get(edge)?.session
    if (session === undefined) return
    let last = this.#last.get(checked)
    if (last === undefined) {
      last = new Map()
      this.#last.set(checked, last)
    }
    const earlier = last.get(edge)
    this.#replay(checked, edge, frame)
    if (earlier?.session === session) this.#replay(checked, edge, earlier.frame)
    // An announcement that comes again counts as repeated, so a node may wait for longer. A question that does is answered again.
    if (isAnnouncement(frame) || isVoucher(frame)) last.delete(edge)
    else last.set(edge, { frame, session })
  }

  #replay(checked: CheckedNode, edge: number, frame: Uint8Array): void {
    const { node, origin } = checked
    const { predictor, gradients, ownGradients } = node
    const held = checked.neighbourSum(edge)?.count
    node.receive(edge, frame)
    const isUnchanged =
      node.takeEffects().length === 0 &&
      node.predictor === predictor &&
      node.gradients === gradients &&
      node.ownGradients === ownGradients &&
      node.inspect.neighbourSum(edge)?.count === held
    if (!isUnchanged)
      throw new Violation('idempotence', `a duplicate frame from ${peerOf(checked, edge)} changed ${origin}`)
  }
}

/**
 * The count held for an edge, session and predictor never decreases, unless a link has been lost anywhere since the predictor was
 * created: then the gradients behind that link leave the sums.
 */
export class EdgeMonotone implements Invariant {
  /** Number of links lost so far. */
  #disconnects = 0
  /** Number of links lost when a predictor was created. */
  readonly #disconnectsAtCreation = new Map<string, number>()
  readonly #held = new WeakMap<CheckedNode, Map<number, { readonly id: PredictorId; readonly count: number }>>()

  constructor(start: Predictor) {
    this.#disconnectsAtCreation.set(formatId(start.id), 0)
  }

  started(checked: CheckedNode): void {
    this.#held.set(checked, new Map())
  }

  predictorChanged(_checked: CheckedNode, { cause, predictor }: PredictorChange): void {
    if (cause === 'updated') this.#disconnectsAtCreation.set(formatId(predictor.id), this.#disconnects)
  }

  connected(checked: CheckedNode, edge: number): void {
    this.#held.get(checked)?.delete(edge)
  }

  disconnected(): void {
    this.#disconnects++
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const { id } = checked.node.predictor
    const counts = this.#held.get(checked)
    const last = counts?.get(edge)
    const count = checked.neighbourSum(edge)?.count ?? 0
    if (
      last &&
      count < last.count &&
      sameId(last.id, id) &&
      this.#disconnectsAtCreation.get(formatId(id)) === this.#disconnects
    ) {
      const from = peerOf(checked, edge)
      throw new Violation(
        'edge monotone',
        `the sum for ${formatId(id)} that ${checked.origin} holds from ${from} decreased from ${last.count} to ${count}`
      )
    }
    if (count !== last?.count || last.id !== id) counts?.set(edge, { id, count })
  }
}

/** Nodes never refuse valid frames. */
export class Acceptance implements Invariant {
  readonly #isHostile: (node: number) => boolean

  /** @param isHostile whether the frames of a node may be refused */
  constructor(isHostile: (node: number) => boolean) {
    this.#isHostile = isHostile
  }

  frameRefused(checked: CheckedNode, edge: number, reason: string): void {
    if (this.#isHostile(edge)) return
    throw new Violation('acceptance', `${checked.origin} refused a frame of ${peerOf(checked, edge)}: ${reason}`)
  }
}

function peerOf(checked: CheckedNode, edge: number): string {
  return checked.edges.get(edge)?.peer ?? `edge ${edge}`
}

/** If no frame is lost, a whole predictor is sent only to a neighbour that holds none of the ancestors from which steps are kept. */
export class Economy implements Invariant {
  frameSent(checked: CheckedNode, edge: number, frame: Uint8Array): void {
    if (isFragment(frame) || !carriesWhole(frame)) return
    const { node, origin } = checked
    const held = node.inspect.neighbourPredictor(edge)
    const steps = node.lineage.findIndex(({ parent }) => held && sameId(parent, held)) + 1
    if (steps === 0 || steps > node.inspect.chain.steps) return
    const what = `${origin} sends ${formatId(node.predictor.id)} to ${peerOf(checked, edge)}`
    throw new Violation('economy', `${what}, which is ${steps} steps behind, as a whole`)
  }
}

/** The flag in a frame's second byte. */
function carriesWhole(frame: Uint8Array): boolean {
  return (frame[1] & 2) !== 0
}

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

/** Withholding: a neighbour that receives frames but never acknowledges them is refused. */
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
