/**
 * Decides when and how the predictor is sent to a neighbour that lacks it: at once; as the steps
 * from an ancestor that the neighbour holds; whole if it is small or was requested; otherwise as an
 * offer (only its id), which the neighbour can request, or download outside the edges.
 */
import { copyOfShared, type Header } from '../state/predictor.js'
import { type Precedence, type PredictorId, sameId, takesPrecedence } from '../state/predictor-id.js'
import type { Step } from '../state/vectors.js'
import type { Chain, ReceivedFrame, Whole } from '../wire/frame.js'
import type { CurrentPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'

export interface PushOptions {
  /** Peer id of this node. */
  readonly self: string
  readonly precedence: Precedence
  /** Whole predictors of at most this many bytes are sent without a request. */
  readonly pushBytes: number
  /** Size of a whole predictor, in bytes. */
  readonly wholeBytes: number
  /** Lets the host download a predictor that a neighbour offers. Undefined if it is requested. */
  readonly download?: (id: PredictorId, from: string) => void
}

export class PushPolicy {
  readonly #current: CurrentPredictor
  readonly #options: PushOptions
  /** Whether the host downloads a predictor. Requests wait for it. */
  #isDownloading = false
  /** The predictor that was held when a download failed. While it is held, others are requested. */
  #failedAt: PredictorId | undefined

  constructor(current: CurrentPredictor, options: PushOptions) {
    this.#current = current
    this.#options = options
  }

  /** Whether the neighbour is known to hold a worse predictor. */
  isBehind(edge: Edge): boolean {
    const { self, precedence } = this.#options
    return (
      edge.peerPredictor !== undefined && takesPrecedence(precedence, this.#id, edge.peerPredictor, self, edge.peer)
    )
  }

  /** Whether a neighbour's predictor is better than the current one. */
  isBetter(id: PredictorId, edge: Edge): boolean {
    const { self, precedence } = this.#options
    return takesPrecedence(precedence, id, this.#id, edge.peer, self)
  }

  /** Whether the neighbour is known to hold the current predictor. */
  isInSync(edge: Edge): boolean {
    return edge.peerPredictor !== undefined && sameId(edge.peerPredictor, this.#id)
  }

  /** Whether the neighbour holds the current predictor, or will after the last frame. */
  willBeInSync(edge: Edge): boolean {
    if (this.isInSync(edge)) return true
    return edge.pushed.last !== undefined && edge.pushed.last.kind !== 'offer' && this.#wasPushed(edge)
  }

  /** Whether the predictor must be sent (again) without a request. */
  mustPush(edge: Edge): boolean {
    return this.isBehind(edge) && (edge.pushed.isLost || !this.#wasPushed(edge) || this.#canFollowOffer(edge))
  }

  /**
   * The neighbour holds a better predictor, which this node does not have: it is requested, unless
   * it was already.
   */
  request(edge: Edge, { id, content }: ReceivedFrame, period: number): void {
    if (
      edge.pushed.isDistrusted ||
      (edge.pushed.requested && sameId(edge.pushed.requested, id) && content === undefined)
    )
      return
    edge.pushed.requested = id
    edge.pushed.requestBackoff.start(period, edge.roundTrip)
    if (content === undefined) this.#ask(edge, id)
    else edge.due.request = true
  }

  /**
   * The host has downloaded a predictor, or it cannot. Neighbours send the steps to their predictors, or
   * offer these again.
   */
  downloadEnded(edges: Iterable<Edge>, hasSucceeded: boolean, period: number): void {
    this.#isDownloading = false
    this.#failedAt = hasSucceeded ? undefined : this.#id
    for (const edge of edges) {
      const { peerPredictor, pushed } = edge
      if (peerPredictor === undefined || pushed.isDistrusted || !this.isBetter(peerPredictor, edge)) continue
      pushed.requestBackoff.start(period, edge.roundTrip)
      if (!hasSucceeded) edge.due.request = true
    }
  }

  /** Requests the predictor of a neighbour, or lets the host download it. */
  #ask(edge: Edge, id: PredictorId): void {
    if (this.#isDownloading) return
    const { download } = this.#options
    if (download === undefined || (this.#failedAt && sameId(this.#failedAt, this.#id))) edge.due.request = true
    else {
      this.#isDownloading = true
      download(id, edge.peer)
    }
  }

  /** Repeats announcements, requests and predictors that seem lost, each after its backoff. */
  scheduleRetries(edge: Edge, period: number): void {
    const peerPredictor = edge.peerPredictor
    if (peerPredictor === undefined) {
      // The first frames of both ends may be lost, so repeat until a frame arrives.
      if (edge.pushed.helloBackoff.isDue(period)) {
        edge.pushed.helloBackoff.advance(period)
        edge.due.hello = true
      }
    } else if (this.isBetter(peerPredictor, edge)) {
      if (!this.#isDownloading && edge.pushed.requestBackoff.isDue(period)) {
        edge.pushed.requestBackoff.advance(period)
        this.#ask(edge, peerPredictor)
      }
    } else if (this.isBehind(edge) && edge.pushed.backoff.isDue(period)) {
      edge.pushed.isLost = true
      edge.pushed.backoff.advance(period)
    }
  }

  /** Whether the predictor was sent and is neither acknowledged nor considered lost. */
  isInFlight(edge: Edge, period: number): boolean {
    const { last: push } = edge.pushed
    if (push === undefined || push.kind === 'offer' || !this.#wasPushed(edge)) return false
    return push.sequence > edge.acknowledged && !edge.pushed.backoff.isDue(period)
  }

  /** Whether the predictor was sent at most that number of periods ago, and has not arrived. */
  isOnItsWay(edge: Edge, period: number, periods: number): boolean {
    const { acknowledged, pushed } = edge
    const push = pushed.last
    if (push === undefined || push.kind === 'offer' || !this.#wasPushed(edge)) return false
    return this.isBehind(edge) && push.sequence > acknowledged && period - push.period <= periods
  }

  /** Content of the frame with this sequence number. Records it as sent. */
  content(edge: Edge, sequence: number, period: number): Whole | Chain | undefined {
    if (!this.mustPush(edge) && !(edge.due.reply && this.isBehind(edge))) return undefined
    const { id } = this.#current.predictor
    const isSmall = this.#options.wholeBytes <= this.#options.pushBytes
    const likely = isSmall ? undefined : this.#inFlightChain(edge)
    const steps = likely ?? this.#chain(edge)
    const kind = steps ? 'steps' : isSmall || edge.due.reply ? 'whole' : 'offer'
    if (!this.#wasPushed(edge)) edge.pushed.backoff.start(period, edge.roundTrip)
    edge.pushed.last = { id, kind, sequence, period, isOptimistic: likely !== undefined, steps: steps?.length ?? 0 }
    edge.pushed.isLost = false
    if (steps) {
      const { parent } = this.#current.lineage[steps.length - 1]
      return edge.exchanged?.relative(steps, parent) ?? { kind: 'steps', steps, own: 0, theirs: 0 }
    }
    return kind === 'whole' ? { kind, ...copyOfShared(this.#current.predictor) } : undefined
  }

  /**
   * Headers that the neighbour may lack: back to its predictor if that is an ancestor, otherwise
   * back to the last predictor that both ends held, whose ancestors it knows; all known headers if
   * neither is an ancestor.
   * @param min number of headers that are needed
   */
  headers(edge: Edge, min: number): readonly Header[] {
    const { lineage } = this.#current
    for (const known of [edge.peerPredictor, edge.pushed.lastCommon]) {
      const oldest = known ? lineage.findIndex(header => sameId(header.parent, known)) : -1
      if (oldest >= 0) return lineage.slice(0, Math.max(oldest + 1, min))
    }
    return lineage
  }

  /**
   * The steps from the predictor that is in flight to the neighbour. A neighbour that does not
   * adopt it requests the predictor, which costs a round trip. For small models the saved bytes do
   * not justify that.
   */
  #inFlightChain({ pushed, acknowledged, due }: Edge): readonly Step[] | undefined {
    const { last, isLost } = pushed
    if (last === undefined || last.kind === 'offer' || last.sequence <= acknowledged || isLost || due.reply)
      return undefined
    return this.#current.stepsFrom(last.id)
  }

  /** The steps from the neighbour's predictor, or from its parent, which it often holds. */
  #chain(edge: Edge): readonly Step[] | undefined {
    const { peerPredictor, acknowledged, due } = edge
    const { lastCommon, commonParent, last: push } = edge.pushed
    if (peerPredictor === undefined) return undefined
    let maxSteps = Number.POSITIVE_INFINITY
    // A request after such steps have arrived means that the neighbour could not use them.
    if (due.reply && push?.kind === 'steps' && !push.isOptimistic && this.#wasPushed(edge)) {
      if (push.sequence <= acknowledged) maxSteps = push.steps - 1
    }
    let steps = this.#current.stepsFrom(peerPredictor)
    if (steps === undefined && lastCommon !== undefined) {
      // Its last update is on another branch.
      const parent = sameId(lastCommon, peerPredictor) ? commonParent : lastCommon
      if (parent?.updates === peerPredictor.updates - 1) steps = this.#current.stepsFrom(parent)
    }
    return steps && steps.length <= maxSteps ? steps : undefined
  }

  get #id(): PredictorId {
    return this.#current.predictor.id
  }

  /** Whether the predictor was offered, and the neighbour now holds one from which steps lead to it. */
  #canFollowOffer({ pushed: { last }, peerPredictor }: Edge): boolean {
    return last?.kind === 'offer' && peerPredictor !== undefined && this.#current.stepsFrom(peerPredictor) !== undefined
  }

  #wasPushed({ pushed: { last } }: Edge): boolean {
    return last !== undefined && sameId(last.id, this.#id)
  }
}
