/**
 * ADMB as a state machine (Dekel et al., "Robust Distributed Online Prediction", Algorithms 3 to 6), with the repairs that
 * real networks need: precedence by origin, names, incarnations, coverage, sessions, sums only to those who hold the same
 * predictor, forwarding at once, carry-over. It has no clock, no randomness and no I/O: the driver brings events (own
 * gradients, ticks, frames, neighbours up and down), takes the effects, and asks for frames when a transport can take one.
 * The same code runs in the simulator and over libp2p.
 */
import { DivergenceError } from '../base/errors.js'
import type { Blocks } from '../learner/types.js'
import { BufferPool } from './buffers.js'
import { FrameError } from './bytes.js'
import { type Contributor, ContributorTable } from './contributors.js'
import { covered, union } from './coverage.js'
import { CurrentPredictor } from './current-predictor.js'
import { decodeFrame } from './decode.js'
import { Edge } from './edge.js'
import { isFragment } from './fragments.js'
import type { ReceivedFrame, ReceivedSum, Shapes } from './frame.js'
import { FrameSender } from './frame-sender.js'
import { Ledger } from './ledger.js'
import { addUp, NeighbourSums } from './neighbour-sums.js'
import type { AdmbOptions, Effect } from './options.js'
import { Outbox } from './outbox.js'
import { OutgoingSums } from './outgoing-sums.js'
import type { Batch, Header, Predictor } from './predictor.js'
import { type PredictorId, sameId } from './predictor-id.js'
import {
  decodeSaved,
  encodeSaved,
  encodeSavedBlocks,
  PredictorAssembler,
  type Saved,
  type SavedBlocks
} from './saved.js'
import { type OutgoingFragment, StreamingSum } from './streaming-sum.js'
import { byteLength } from './vectors.js'

export class AdmbNode {
  readonly #options: AdmbOptions
  readonly #shapes: Shapes
  readonly #current: CurrentPredictor
  readonly #outbox: Outbox
  readonly #table = new ContributorTable()
  readonly #selfIndex: number
  readonly #contributor: Contributor
  readonly #ledger: Ledger
  readonly #edges = new Map<number, Edge>()
  readonly #buffers: BufferPool
  readonly #sums: NeighbourSums
  readonly #outgoingSums: OutgoingSums
  readonly #sender: FrameSender
  #effects: Effect[] = []
  #period = 0
  #streaming: StreamingSum | undefined
  /** Where a frame's sum is put. */
  readonly #allocateSum = () => this.#buffers.take()

  constructor(options: AdmbOptions) {
    if (!Number.isSafeInteger(options.batch) || options.batch < 1) {
      throw new RangeError(`batch is ${options.batch}; it must be a whole number of at least 1`)
    }
    if (options.precedence === 'sender' && options.carry) {
      throw new RangeError('sender precedence lets nodes return to a predictor, so it needs carry 0')
    }
    const { self, incarnation, layout, initial, batch, carry = 0, lineage = 64 } = options
    const { precedence = 'origin', pushBytes = 65536, known } = options
    this.#options = options
    this.#shapes = { parameters: layout, state: options.rule.stateLayout(layout) }
    const wholeBytes = 2 * byteLength(this.#shapes.parameters) + byteLength(this.#shapes.state)
    this.#current = new CurrentPredictor(initial, options, batch, carry === 0 ? 1 : lineage, known)
    this.#outbox = new Outbox(this.#current, { self, precedence, pushBytes, wholeBytes })
    this.#selfIndex = this.#table.indexOf(self, incarnation)
    this.#contributor = { origin: self, incarnation }
    this.#buffers = new BufferPool(layout)
    this.#ledger = new Ledger(this.#buffers, carry, this.#selfIndex, initial.id)
    this.#sums = new NeighbourSums(this.#selfIndex, this.#edges, this.#buffers)
    this.#outgoingSums = new OutgoingSums(this.#ledger, this.#sums, this.#buffers)
    this.#sender = new FrameSender({
      shapes: this.#shapes,
      table: this.#table,
      buffers: this.#buffers,
      current: this.#current,
      outbox: this.#outbox,
      sums: this.#outgoingSums,
      fragmentBytes: options.fragmentBytes,
      allocate: options.allocate
    })
  }

  /** Layouts of parameters and rule state, as frames carry them. */
  get shapes(): Shapes {
    return this.#shapes
  }

  get predictor(): Predictor {
    return this.#current.predictor
  }

  /** Gradients held for the predictor, own and others': an update follows at `batch`. */
  get gradients(): number {
    return this.#ledger.count + this.#sums.count
  }

  /** Own gradients that will never be in a batch. */
  get discarded(): number {
    return this.#ledger.discarded
  }

  /** Own gradients for the predictor, those carried over included. */
  get ownGradients(): number {
    return this.#ledger.count
  }

  /** Headers of the predictor and its ancestors, newest first, as far as they are kept. */
  get lineage(): readonly Header[] {
    return this.#current.lineage
  }

  /** The sum held from a neighbour for the current predictor, with its contributors. For status and checks. */
  neighbourSum(edge: number): (Batch & { readonly contributors: readonly Contributor[] }) | undefined {
    const neighbourSum = this.#edges.get(edge)?.neighbourSum
    if (neighbourSum === undefined) return undefined
    const contributors = covered(neighbourSum.coverage).map(number => this.#table.contributor(number))
    return { sum: neighbourSum.sum, count: neighbourSum.count, contributors }
  }

  /** Where the learner adds the gradients (a sum) of own inputs, taken at `predictor.parameters`; `added` must follow. */
  get accumulator(): Blocks {
    return this.#ledger.accumulator
  }

  /**
   * Algorithm 3: `count` own gradients were added to the accumulator. May update.
   * @throws DivergenceError if the update's result is not finite, others' sums that would make it so apart; the node must not be
   *   used any further
   */
  added(count: number): void {
    const streamed = this.#streaming
    const version = this.#outgoingSums.version
    this.#streaming = undefined
    this.#ledger.added(count)
    this.#outgoingSums.markChanged()
    const isUpdated = this.#updateIfFull()
    if (streamed?.isStep === isUpdated && streamed.isComplete(count, version))
      this.#sender.finishStreaming(streamed, this.#period)
    else streamed?.cancel()
  }

  /**
   * For gradients that come block by block: says that those of `count` inputs will now be added to the accumulator, no more than
   * b is short of. `ready` follows for each block, then `added`, all before anything else happens to the node; or `revoked`.
   * @param edges that can take a frame
   * @param isPeriodOver whether a period will have passed before all is added, so that sums are due
   */
  startStreaming(count: number, edges: Iterable<number>, isPeriodOver: boolean): void {
    const { batch, fragmentBytes = Number.POSITIVE_INFINITY } = this.#options
    this.cancelStreaming()
    const { blocks } = this.#shapes.parameters
    if (blocks.length === 1 || byteLength(this.#shapes.parameters) <= fragmentBytes) return
    const isStep = this.gradients + count >= batch
    const sum = new StreamingSum(count, isStep, this.#outgoingSums.version, blocks.length, this.#ledger)
    for (const number of edges) {
      const edge = this.#edges.get(number)
      if (edge === undefined || edge.outgoingTransfer || edge.replyDue || edge.urgent || !this.#outbox.isInSync(edge))
        continue
      if (isStep) sum.addDestination(number, edge, this.#sums.selected())
      else if (isPeriodOver || edge.sumDue) sum.addDestination(number, edge, this.#sums.selected(edge))
    }
    if (!sum.isEmpty) this.#streaming = sum
  }

  /** A block of the accumulator holds all that was announced with `begin`. @returns parts that can leave at once */
  blockReady(block: number): OutgoingFragment[] {
    return this.#streaming?.blockReady(block) ?? []
  }

  /** What was announced with `begin` will not be added as it stood in the accumulator when its blocks were ready. */
  cancelStreaming(): void {
    this.#streaming?.cancel()
    this.#streaming = undefined
  }

  /**
   * Look-ahead: the running average that would result if the update were made now with the gradients held, fewer than b of
   * them. Shared state is not touched. `predictor.average` when nothing is held.
   */
  lookAhead(): Blocks {
    if (this.gradients === 0) return this.predictor.average
    const { rule, averaging } = this.#options
    const sum = this.#buffers.take()
    const { count } = addUp(sum, this.#ledger.total(), this.#sums.selected())
    const updates = this.predictor.id.updates
    const { parameters } = rule.step(this.predictor, sum, count, updates)
    this.#buffers.give(sum)
    return averaging.average(this.predictor.average, parameters, updates)
  }

  /** Algorithm 4: a period T has passed; sums become due, and what was lost on the way is repeated. */
  tick(): void {
    this.#period++
    for (const edge of this.#edges.values()) {
      this.#outbox.scheduleRetries(edge, this.#period)
      edge.ackDue = edge.ackPending
      if (this.#outbox.willBeInSync(edge) && this.#outgoingSums.isDue(edge, this.#period)) edge.sumDue = true
    }
  }

  /** A neighbour's session begins. `edge` and `session` are the driver's numbers, `session` the same at both ends. */
  connect(edge: number, session: number, peer: string): void {
    if (this.#edges.has(edge)) this.disconnect(edge)
    const opened = new Edge(session, peer)
    opened.announceBackoff.start(this.#period, 0)
    this.#edges.set(edge, opened)
  }

  /**
   * The session ended: what came over it is dropped; own gradients stay. May update: without the sum that is gone, others that it
   * overlapped with may go together.
   */
  disconnect(edge: number): void {
    const edgeToRemove = this.#edges.get(edge)
    if (edgeToRemove === undefined) return
    this.#edges.delete(edge)
    this.#sums.edgeRemoved(edgeToRemove)
    this.#outgoingSums.markChanged()
    this.#updateIfFull()
  }

  /** Algorithm 5: a frame arrived. Never throws for bad bytes; it reports them as `refused` and changes nothing. */
  receive(edgeNumber: number, bytes: Uint8Array): void {
    const edge = this.#edges.get(edgeNumber)
    if (edge === undefined) return
    try {
      if (!isFragment(bytes)) this.#decode(edge, bytes)
      else if (edge.decoder.fragments.receive(bytes, edge.session, this.#shapes) && edge.deferred) {
        this.#decode(edge, edge.deferred)
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.#effects.push({ kind: 'refused', edge: edgeNumber, reason: error.message })
    }
  }

  /** A predictor that came outside the tree (`save` of another node). Adopts it if it is better. Throws FrameError. */
  offer(bytes: Uint8Array, from: string): void {
    this.#offer(decodeSaved(bytes, this.#shapes, this.#table, this.#options.digest), from)
  }

  #offer(saved: Saved, from: string): void {
    if (this.#current.compare(saved.predictor.id) > 0) {
      this.#adopt(saved.predictor, saved.lineage, undefined, from)
      this.#updateIfFull()
    }
  }

  /** Whether a name heard of elsewhere is better than what is held. Throws FrameError on equivocation. */
  isBetter(id: PredictorId): boolean {
    return this.#current.compare(id) > 0
  }

  /** The predictor with its lineage as stand-alone bytes, for storage and for `offer`. */
  save(saved: Saved = this.snapshot()): Uint8Array {
    return encodeSaved(saved, this.#shapes, this.#table)
  }

  /** What `save` would write now, for writing later. */
  snapshot(): Saved {
    return { predictor: this.predictor, lineage: this.lineage }
  }

  /** Takes back what `save` gave in an earlier run, before any neighbour is there. */
  restore(bytes: Uint8Array): void {
    this.offer(bytes, this.#options.self)
    this.#effects = []
  }

  /** The predictor in parts, for storage block by block. */
  saveBlocks(): SavedBlocks {
    return encodeSavedBlocks(this.snapshot(), this.#table)
  }

  /** Takes back what `parts` gave in an earlier run, before any neighbour is there. Throws FrameError. */
  restoreBlocks({ head, blocks }: { readonly head: Uint8Array; readonly blocks: readonly Uint8Array[] }): void {
    const assembler = new PredictorAssembler(head, blocks.length, this.#shapes, this.#table)
    for (const block of blocks) assembler.add(block)
    this.#offer(assembler.finish(this.#options.digest), this.#options.self)
    this.#effects = []
  }

  takeEffects(): Effect[] {
    const effects = this.#effects
    if (effects.length > 0) this.#effects = []
    return effects
  }

  /** Whether `frame(edge)` has something to say now. */
  hasFrame(edgeNumber: number): boolean {
    const edge = this.#edges.get(edgeNumber)
    return edge !== undefined && this.#sender.hasFrame(edge)
  }

  /**
   * The next frame for that neighbour, newest state, or undefined if there is nothing to say; large ones in parts (`isFragment`), after
   * which the next may follow at once. Call when it can be sent.
   */
  frame(edgeNumber: number): Uint8Array | undefined {
    const edge = this.#edges.get(edgeNumber)
    return edge && this.#sender.next(edge, this.#period)
  }

  #decode(edge: Edge, bytes: Uint8Array): void {
    const frame = decodeFrame(bytes, this.#shapes, this.#table, edge, this.#allocateSum)
    if (frame === undefined) return
    edge.deferred = undefined
    this.#accept(edge, frame)
  }

  #accept(edge: Edge, frame: ReceivedFrame): void {
    const comparison = this.#current.compare(frame.id)
    const isBetter = this.#outbox.isBetter(frame.id, edge)
    const adopted = isBetter && frame.content ? this.#current.receive(frame) : undefined
    edge.received = frame.sequence
    edge.acknowledge(frame.received, this.#period)
    edge.peerPredictor = frame.id
    const isRepeatedAnnouncement = frame.received === 0 && frame.sequence > 1
    if (frame.content || frame.sum || frame.request || isRepeatedAnnouncement) edge.ackPending = true
    if (adopted) this.#adopt(adopted.predictor, frame.headers, adopted.batch, edge.peer)
    else if (isBetter && (!edge.requested || !sameId(edge.requested, frame.id) || frame.content)) {
      edge.requested = frame.id
      edge.requestDue = true
      edge.requestBackoff.start(this.#period, edge.roundTrip)
    }
    if (comparison === 0 || adopted) {
      // The very name that is held, so that comparing them from now on is quick.
      edge.peerPredictor = edge.lastCommon = edge.decoder.lastId = this.predictor.id
      edge.encoder.acknowledgeSum(frame.heldSum)
      if (frame.sum) this.#storeSum(edge, frame.sequence, frame.sum)
    } else if (frame.sum) this.#buffers.give(frame.sum.sum)
    if (frame.request && this.#outbox.isBehind(edge) && !this.#outbox.isInFlight(edge, this.#period))
      edge.replyDue = true
    this.#updateIfFull()
  }

  #storeSum(edge: Edge, sequence: number, { base, coverage, count, sum }: ReceivedSum): void {
    if (coverage === undefined) {
      this.#buffers.give(sum)
      return
    }
    // The very frame may have brought the predictor with which lists begin anew.
    const current = edge.decoder.reorder(coverage)
    edge.decoder.recordReceived(sequence, current, base)
    this.#sums.store(edge, { sequence, count, coverage: current, sum })
    this.#outgoingSums.markChanged()
  }

  #adopt(predictor: Predictor, chain: readonly Header[], batch: Batch | undefined, from: string): void {
    this.#switchPredictor(predictor, chain, batch)
    this.#effects.push({ kind: 'adopted', predictor, from })
  }

  /** Algorithm 6, when b gradients are there. @returns whether an update was made, with all sums that were held */
  #updateIfFull(): boolean {
    if (this.gradients < this.#options.batch) return false
    const sum = this.#buffers.take()
    const { count, coverages } = addUp(sum, this.#ledger.close(this.#period), this.#sums.selected())
    const batch = { sum, count }
    const predictor = this.#current.next(batch, this.#contributor)
    if (predictor === undefined) {
      if (!this.#dropOverflowingSums()) {
        throw new DivergenceError(
          `update ${this.predictor.id.updates + 1} gives numbers that are not finite: scale the features, or use a smaller step (--rule NAME,step=…)`
        )
      }
      this.#updateIfFull()
      return false
    }
    const header: Header = { id: predictor.id, parent: this.predictor.id, count, coverage: union(coverages) }
    this.#switchPredictor(predictor, [header], batch)
    this.#effects.push({ kind: 'updated', predictor, header, batch })
    return true
  }

  /** Drops sums with which alone an update would not be finite: somebody's fault or malice. @returns whether there was one */
  #dropOverflowingSums(): boolean {
    let wasDropped = false
    for (const [number, edge] of this.#edges) {
      if (!edge.neighbourSum?.count || this.#current.next(edge.neighbourSum, this.#contributor)) continue
      this.#sums.drop(edge)
      this.#outgoingSums.markChanged()
      this.#effects.push({ kind: 'refused', edge: number, reason: 'gradients that no update with them would survive' })
      wasDropped = true
    }
    return wasDropped
  }

  #switchPredictor(predictor: Predictor, chain: readonly Header[], batch: Batch | undefined): void {
    this.#current.switchPredictor(predictor, chain, batch)
    this.#ledger.switchPredictor(predictor.id, this.#current.lineage, this.#period)
    this.#sums.switchPredictor()
    for (const edge of this.#edges.values()) edge.switchPredictor()
    this.#outgoingSums.markChanged()
  }
}
