/**
 * ADMB as a state machine (Dekel et al., "Robust Distributed Online Prediction", Algorithms 3 to 6), with the repairs that
 * real networks need: precedence by origin, names, incarnations, coverage, sessions, sums only to those who hold the same
 * predictor, forwarding at once, carry-over. It has no clock, no randomness and no I/O: the driver brings events (own
 * gradients, ticks, frames, neighbours up and down), takes the effects, and asks for frames when a transport can take one.
 * The same code runs in the simulator and over libp2p.
 */
import { DivergenceError } from '../base/errors.js'
import type { Blocks } from '../learner/types.js'
import { Buffers } from './buffers.js'
import { type Contributor, ContributorTable } from './contributors.js'
import { covered, union } from './coverage.js'
import { CurrentPredictor } from './current-predictor.js'
import { decodeFrame } from './decode.js'
import { Edge } from './edge.js'
import { FrameError } from './errors.js'
import { isFragment } from './fragments.js'
import type { ReceivedFrame, ReceivedSum, Shapes } from './frame.js'
import { FrameSender } from './frame-sender.js'
import { Ledger } from './ledger.js'
import type { AdmbOptions, Effect } from './options.js'
import { Outbox } from './outbox.js'
import { OutgoingSums } from './outgoing-sums.js'
import type { Batch, Header, Predictor } from './predictor.js'
import { type PredictorId, sameId } from './predictor-id.js'
import { Assembler, decodeSaved, encodeParts, encodeSaved, type Saved, type SavedParts } from './saved.js'
import { type OutgoingFragment, StreamingSum } from './streaming-sum.js'
import { Sums, total } from './sums.js'
import { byteLength } from './vectors.js'

export class AdmbNode {
  readonly #options: AdmbOptions
  readonly #shapes: Shapes
  readonly #current: CurrentPredictor
  readonly #outbox: Outbox
  readonly #table = new ContributorTable()
  readonly #self: number
  readonly #maker: Contributor
  readonly #ledger: Ledger
  readonly #edges = new Map<number, Edge>()
  readonly #buffers: Buffers
  readonly #sums: Sums
  readonly #outgoingSums: OutgoingSums
  readonly #sender: FrameSender
  #effects: Effect[] = []
  #period = 0
  #streaming: StreamingSum | undefined
  /** Where a frame's sum is put. */
  readonly #spare = () => this.#buffers.take()

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
    this.#self = this.#table.number(self, incarnation)
    this.#maker = { origin: self, incarnation }
    this.#buffers = new Buffers(layout)
    this.#ledger = new Ledger(this.#buffers, carry, this.#self, initial.id)
    this.#sums = new Sums(this.#self, this.#edges, this.#buffers)
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
  held(edge: number): (Batch & { readonly contributors: readonly Contributor[] }) | undefined {
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
    const sum = this.#streaming
    const version = this.#outgoingSums.version
    this.#streaming = undefined
    this.#ledger.added(count)
    this.#outgoingSums.changed()
    const isMade = this.#updateIfFull()
    if (sum?.isStep === isMade && sum.isComplete(count, version)) this.#sender.conclude(sum, this.#period)
    else sum?.abandon()
  }

  /**
   * For gradients that come block by block: says that those of `count` inputs will now be added to the accumulator, no more than
   * b is short of. `ready` follows for each block, then `added`, all before anything else happens to the node; or `revoked`.
   * @param edges that can take a frame
   * @param isPeriodOver whether a period will have passed before all is added, so that sums are due
   */
  begin(count: number, edges: Iterable<number>, isPeriodOver: boolean): void {
    const { batch, fragmentBytes = Number.POSITIVE_INFINITY } = this.#options
    this.revoked()
    const { blocks } = this.#shapes.parameters
    if (blocks.length === 1 || byteLength(this.#shapes.parameters) <= fragmentBytes) return
    const isStep = this.gradients + count >= batch
    const sum = new StreamingSum(count, isStep, this.#outgoingSums.version, blocks.length, this.#ledger)
    for (const number of edges) {
      const edge = this.#edges.get(number)
      if (edge === undefined || edge.transfer || edge.answer || edge.urgent || !this.#outbox.agrees(edge)) continue
      if (isStep) sum.add(number, edge, this.#sums.chosen())
      else if (isPeriodOver || edge.sumDue) sum.add(number, edge, this.#sums.chosen(edge))
    }
    if (!sum.isEmpty) this.#streaming = sum
  }

  /** A block of the accumulator holds all that was announced with `begin`. @returns parts that can leave at once */
  ready(block: number): OutgoingFragment[] {
    return this.#streaming?.ready(block) ?? []
  }

  /** What was announced with `begin` will not be added as it stood in the accumulator when its blocks were ready. */
  revoked(): void {
    this.#streaming?.abandon()
    this.#streaming = undefined
  }

  /**
   * Look-ahead: the running average that would result if the update were made now with the gradients held, fewer than b of
   * them. Shared state is not touched. `predictor.average` when nothing is held.
   */
  ahead(): Blocks {
    if (this.gradients === 0) return this.predictor.average
    const { rule, averaging } = this.#options
    const sum = this.#buffers.take()
    const { count } = total(sum, this.#ledger.total(), this.#sums.chosen())
    const updates = this.predictor.id.updates
    const { parameters } = rule.step(this.predictor, sum, count, updates)
    this.#buffers.give(sum)
    return averaging.average(this.predictor.average, parameters, updates)
  }

  /** Algorithm 4: a period T has passed; sums become due, and what was lost on the way is repeated. */
  tick(): void {
    this.#period++
    for (const edge of this.#edges.values()) {
      this.#outbox.remind(edge, this.#period)
      edge.ackDue = edge.owesAck
      if (this.#outbox.shares(edge) && this.#outgoingSums.isDue(edge, this.#period)) edge.sumDue = true
    }
  }

  /** A neighbour's session begins. `edge` and `session` are the driver's numbers, `session` the same at both ends. */
  connect(edge: number, session: number, peer: string): void {
    if (this.#edges.has(edge)) this.disconnect(edge)
    const opened = new Edge(session, peer)
    opened.greetBackoff.start(this.#period, 0)
    this.#edges.set(edge, opened)
  }

  /**
   * The session ended: what came over it is dropped; own gradients stay. May update: without the sum that is gone, others that it
   * overlapped with may go together.
   */
  disconnect(edge: number): void {
    const gone = this.#edges.get(edge)
    if (gone === undefined) return
    this.#edges.delete(edge)
    this.#sums.dropped(gone)
    this.#outgoingSums.changed()
    this.#updateIfFull()
  }

  /** Algorithm 5: a frame arrived. Never throws for bad bytes; it reports them as `refused` and changes nothing. */
  receive(edgeNumber: number, bytes: Uint8Array): void {
    const edge = this.#edges.get(edgeNumber)
    if (edge === undefined) return
    try {
      if (!isFragment(bytes)) this.#decode(edge, bytes)
      else if (edge.incoming.parts.receive(bytes, edge.session, this.#shapes) && edge.deferred) {
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
  wants(id: PredictorId): boolean {
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
  savedParts(): SavedParts {
    return encodeParts(this.snapshot(), this.#table)
  }

  /** Takes back what `parts` gave in an earlier run, before any neighbour is there. Throws FrameError. */
  restoreParts({ head, blocks }: { readonly head: Uint8Array; readonly blocks: readonly Uint8Array[] }): void {
    const assembler = new Assembler(head, blocks.length, this.#shapes, this.#table)
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
    const frame = decodeFrame(bytes, this.#shapes, this.#table, edge, this.#spare)
    if (frame === undefined) return
    edge.deferred = undefined
    this.#accept(edge, frame)
  }

  #accept(edge: Edge, frame: ReceivedFrame): void {
    const comparison = this.#current.compare(frame.id)
    const better = this.#outbox.isBetter(frame.id, edge)
    const adopted = better && frame.content ? this.#current.receive(frame) : undefined
    edge.received = frame.sequence
    edge.confirm(frame.received, this.#period)
    edge.peerHolds = frame.id
    const greetsAgain = frame.received === 0 && frame.sequence > 1
    if (frame.content || frame.sum || frame.ask || greetsAgain) edge.owesAck = true
    if (adopted) this.#adopt(adopted.predictor, frame.headers, adopted.batch, edge.peer)
    else if (better && (!edge.asked || !sameId(edge.asked, frame.id) || frame.content)) {
      edge.asked = frame.id
      edge.ask = true
      edge.askBackoff.start(this.#period, edge.roundTrip)
    }
    if (comparison === 0 || adopted) {
      // The very name that is held, so that comparing them from now on is quick.
      edge.peerHolds = edge.agreed = edge.incoming.lastName = this.predictor.id
      edge.outgoing.noteHeld(frame.heldSum)
      if (frame.sum) this.#hold(edge, frame.sequence, frame.sum)
    } else if (frame.sum) this.#buffers.give(frame.sum.sum)
    if (frame.ask && this.#outbox.lacks(edge) && !this.#outbox.isInFlight(edge, this.#period)) edge.answer = true
    this.#updateIfFull()
  }

  #hold(edge: Edge, sequence: number, { base, coverage, count, sum }: ReceivedSum): void {
    if (coverage === undefined) {
      this.#buffers.give(sum)
      return
    }
    // The very frame may have brought the predictor with which lists begin anew.
    const current = edge.incoming.current(coverage)
    edge.incoming.noteReceived(sequence, current, base)
    this.#sums.hold(edge, { sequence, count, coverage: current, sum })
    this.#outgoingSums.changed()
  }

  #adopt(predictor: Predictor, chain: readonly Header[], batch: Batch | undefined, from: string): void {
    this.#switchPredictor(predictor, chain, batch)
    this.#effects.push({ kind: 'adopted', predictor, from })
  }

  /** Algorithm 6, when b gradients are there. @returns whether an update was made, with all sums that were held */
  #updateIfFull(): boolean {
    if (this.gradients < this.#options.batch) return false
    const sum = this.#buffers.take()
    const { count, parts: savedParts } = total(sum, this.#ledger.close(this.#period), this.#sums.chosen())
    const batch = { sum, count }
    const predictor = this.#current.next(batch, this.#maker)
    if (predictor === undefined) {
      if (!this.#refuseExcess()) {
        throw new DivergenceError(
          `update ${this.predictor.id.updates + 1} gives numbers that are not finite: scale the features, or use a smaller step (--rule NAME,step=…)`
        )
      }
      this.#updateIfFull()
      return false
    }
    const header: Header = { id: predictor.id, parent: this.predictor.id, count, coverage: union(savedParts) }
    this.#switchPredictor(predictor, [header], batch)
    this.#effects.push({ kind: 'updated', predictor, header, batch })
    return true
  }

  /** Drops sums with which alone an update would not be finite: somebody's fault or malice. @returns whether there was one */
  #refuseExcess(): boolean {
    let isFound = false
    for (const [number, edge] of this.#edges) {
      if (!edge.neighbourSum?.count || this.#current.next(edge.neighbourSum, this.#maker)) continue
      this.#sums.refuse(edge)
      this.#outgoingSums.changed()
      this.#effects.push({ kind: 'refused', edge: number, reason: 'gradients that no update with them would survive' })
      isFound = true
    }
    return isFound
  }

  #switchPredictor(predictor: Predictor, chain: readonly Header[], batch: Batch | undefined): void {
    this.#current.switchPredictor(predictor, chain, batch)
    this.#ledger.switchPredictor(predictor.id, this.#current.lineage, this.#period)
    this.#sums.switchPredictor()
    for (const edge of this.#edges.values()) edge.switchPredictor()
    this.#outgoingSums.changed()
  }
}
