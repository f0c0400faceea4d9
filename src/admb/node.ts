/**
 * ADMB as a state machine (Dekel et al., "Robust Distributed Online Prediction", Algorithms 3 to 6), with extensions for real
 * networks: precedence by origin, predictor ids, incarnations, coverages, edge sessions, sums only between nodes that hold the
 * same predictor, immediate forwarding, carry-over. It has no clock, no randomness and no I/O: the driver passes events (own
 * gradients, ticks, frames, edges up and down), executes the effects, and asks for frames when the transport can take one.
 * The simulator and the libp2p peer run the same code.
 */
import { DivergenceError } from '../base/errors.js'
import type { Blocks, Layout } from '../learner/types.js'
import { Announcements, isAnnouncement } from './announcements.js'
import { FrameError } from './bytes.js'
import { type Contributor, ContributorTable } from './contributors.js'
import { contributorCount, covered, union } from './coverage.js'
import { CurrentPredictor, type ReceivedPredictor } from './current-predictor.js'
import { decodeFrame } from './decode.js'
import { Edge } from './edge.js'
import { ExchangedSums } from './exchanged-sums.js'
import { isFragment } from './fragments.js'
import type { ReceivedFrame, ReceivedSum } from './frame.js'
import { FrameSender } from './frame-sender.js'
import { Gate } from './gate.js'
import { checkInfluence, OwnInfluence } from './influence.js'
import { type JournalRecord, recover } from './journal.js'
import { gridOf } from './lazy-grid.js'
import { Ledger } from './ledger.js'
import { checkCount, FRAME_LIMITS, MAX_BATCH, WAIT_BATCHES } from './limits.js'
import { addUp, NeighbourSums } from './neighbour-sums.js'
import type { AdmbOptions, Effect } from './options.js'
import { Outbox } from './outbox.js'
import { OutgoingSums } from './outgoing-sums.js'
import { type Batch, batchOf, type Header, type Predictor } from './predictor.js'
import { compareIds, type PredictorId, sameId } from './predictor-id.js'
import {
  decodeSaved,
  encodeSaved,
  encodeSavedBlocks,
  PredictorAssembler,
  type Saved,
  type SavedBlocks
} from './saved.js'
import { bytesOf, encodeSavedSteps, replaySteps, type SavedSteps } from './saved-steps.js'
import { createStep, expand, maximumChainBytes, type Step } from './step.js'
import { type OutgoingFragment, StreamingSum } from './streaming-sum.js'
import { Traffic, type TrafficBytes } from './traffic.js'
import { BufferPool, byteLength, type Shapes, shapesOf } from './vectors.js'

/** A stored predictor: `saveBlocks`, and what `saveSteps` returned since, oldest first. */
export interface StoredBlocks {
  readonly head: Uint8Array
  readonly blocks: readonly Uint8Array[]
  readonly steps?: readonly SavedSteps[]
}

/** A batch whose sum is expanded when it is read. */
function expanded({ count, contributorCount }: Batch, step: Step, layout: Layout): Batch {
  return {
    count,
    contributorCount,
    get sum() {
      return expand(step, layout)
    }
  }
}

/** Contributors that are kept without being used. */
const SPARE_CONTRIBUTORS = 4
/** While the predictor stays the same, contributor lists are compacted after this many periods. */
const COMPACTION_PERIODS = 256

/**
 * ADMB at one node (Dekel et al., Algorithms 3 to 6), as a state machine without I/O: events go in, effects and frames come out.
 * @example
 * const learner = createLearner({ model: 'logistic', dimension: 3 })
 * const recipe = { rule: createRule(), averaging: createAveraging(), digest }
 * const initial = startingPredictor(learner.initial(), recipe)
 * const options = { ...recipe, layout: learner.layout, initial, batch: 2, incarnation: 1 }
 * const [a, b] = ['a', 'b'].map(self => new AdmbNode({ ...options, self }))
 * a.connect(1, 1, 'b')
 * b.connect(1, 1, 'a')
 * a.accumulator[0][0] += 0.5
 * a.added(1)
 * a.tick()
 * const frame = a.frame(1)
 * if (frame !== undefined) b.receive(1, frame)
 */
export class AdmbNode {
  readonly #options: AdmbOptions
  /** The largest b. */
  readonly #maxBatch: number
  readonly #shapes: Shapes
  readonly #current: CurrentPredictor
  readonly #outbox: Outbox
  readonly #table = new ContributorTable()
  readonly #selfIndex: number
  readonly #contributor: Contributor
  readonly #influence: OwnInfluence | undefined
  readonly #ledger: Ledger
  readonly #edges = new Map<number, Edge>()
  readonly #buffers: BufferPool
  readonly #sums: NeighbourSums
  readonly #outgoingSums: OutgoingSums
  readonly #sender: FrameSender
  readonly #gate: Gate
  readonly #traffic: Traffic
  /** Undefined for predictors that need no announcement, because they are as short as one, and for precedence by sender. */
  readonly #announcements: Announcements | undefined
  #effects: Effect[] = []
  #period = 0
  #streaming: StreamingSum | undefined
  /** Period of the last change of predictor. */
  #switchedAt = 0
  /** Number of contributors above which those that are not used are removed. */
  #maxContributors = SPARE_CONTRIBUTORS
  /** Allocates the blocks of a received sum. */
  readonly #allocateSum = () => this.#buffers.take()

  constructor(options: AdmbOptions) {
    const [least, most] =
      typeof options.batch === 'number' ? [options.batch, options.batch] : [options.batch.min, options.batch.max]
    if (!Number.isSafeInteger(least) || least < 1 || most > MAX_BATCH) {
      throw new RangeError(`batch must be an integer from 1 to ${MAX_BATCH}, not ${least}`)
    }
    this.#maxBatch = most
    if (options.precedence === 'sender' && options.carry) {
      throw new RangeError("precedence 'sender' requires carry 0, because nodes can return to an earlier predictor")
    }
    const { self, incarnation, nonce = 0, layout, initial, batch, carry = 0, lineage = 1024 } = options
    const { precedence = 'origin', pushBytes = 65536, known, journal = false } = options
    this.#options = options
    const isLattice = options.rule.grid !== undefined
    this.#shapes = { ...shapesOf(layout, options), isLattice }
    const wholeBytes = maximumChainBytes(this.#shapes)
    const headers = carry === 0 && !journal ? 1 : lineage
    this.#current = new CurrentPredictor(initial, this.#shapes, options, batch, headers, known)
    this.#outbox = new Outbox(this.#current, { self, precedence, pushBytes, wholeBytes })
    this.#selfIndex = this.#table.indexOf({ origin: self, incarnation, nonce })
    this.#contributor = { origin: self, incarnation, nonce }
    this.#buffers = new BufferPool(layout)
    this.#gate = new Gate(options.gate)
    this.#influence = options.influence && new OwnInfluence(options.influence, initial.parameters)
    this.#ledger = new Ledger({
      buffers: this.#buffers,
      carry,
      contributor: this.#selfIndex,
      id: initial.id,
      grid: gridOf(initial, options.rule),
      marksElements: options.marksElements,
      run: journal ? this.#contributor : undefined,
      influence: this.#influence
    })
    this.#sums = new NeighbourSums(this.#selfIndex, this.#edges, this.#buffers)
    this.#outgoingSums = new OutgoingSums(this.#ledger, this.#sums, this.#buffers)
    this.#traffic = new Traffic(isLattice)
    if (wholeBytes > pushBytes && precedence === 'origin')
      this.#announcements = new Announcements(this.#edges, this.#current, this.#outbox)
    this.#sender = new FrameSender({
      shapes: this.#shapes,
      table: this.#table,
      buffers: this.#buffers,
      current: this.#current,
      outbox: this.#outbox,
      sums: this.#outgoingSums,
      announcements: this.#announcements,
      traffic: this.#traffic,
      fragmentBytes: options.fragmentBytes,
      allocate: options.allocate
    })
  }

  /** Layouts of parameters and rule state. */
  get shapes(): Shapes {
    return this.#shapes
  }

  get predictor(): Predictor {
    return this.#current.predictor
  }

  /** b of the current predictor. */
  get batch(): number {
    return batchOf(this.#options.batch, this.predictor)
  }

  /** A better predictor that a neighbour has announced, for which this node waits with sums and updates; mostly undefined. */
  get expected(): PredictorId | undefined {
    return this.#announcements?.expected
  }

  /**
   * Number of gradients with which the node updates: `batch`, or more while it waits for an announced predictor, or for neighbours to
   * receive the current one.
   */
  get needed(): number {
    return this.isWaiting ? WAIT_BATCHES * this.batch : this.batch
  }

  /** Whether a neighbour has announced a better predictor, or has not received the current one. */
  get isWaiting(): boolean {
    return this.#announcements?.isWaiting ?? false
  }

  /** Whether no sums are sent, because a better predictor is expected, or the current one is on its way to a neighbour. */
  get holdsSums(): boolean {
    return this.#announcements?.holdsSums ?? false
  }

  /** Number of gradients available for the next update, own and neighbours'. The node updates when it reaches `needed`. */
  get gradients(): number {
    return this.#ledger.count + this.#sums.count
  }

  /** Number of contributors (peers in one of their runs) that this node knows. */
  get contributors(): number {
    return this.#table.size
  }

  /** The vectors kept of own segments: how many, and how many periods ago the oldest was closed. */
  get retention(): { readonly sums: number; readonly periods: number } {
    const { retainedSums, oldestRetained = this.#period } = this.#ledger
    return { sums: retainedSums, periods: this.#period - oldestRetained }
  }

  /** The steps kept for neighbours that hold an ancestor of the predictor: how many, and their encoded size in bytes. */
  get chain(): { readonly steps: number; readonly bytes: number } {
    return this.#current.chain
  }

  /** Bytes of all frames composed so far, by what they carry. */
  get traffic(): TrafficBytes {
    return this.#traffic.bytes
  }

  /**
   * Share of the squared norm of the last segment that rounding has left for the next one, 0 to 1; undefined for float32 sums and
   * before the first segment.
   */
  get residualShare(): number | undefined {
    return this.#ledger.residualShare
  }

  /** Share of the squared norm of recent own sums that the bound of influence takes, 0 to 1; undefined without a bound. */
  get clippedShare(): number | undefined {
    return this.#influence?.lostShare
  }

  /** Number of own gradients that were dropped unused. */
  get discarded(): number {
    return this.#ledger.discarded
  }

  /** Number of own gradients available for the next update, including those carried over. */
  get ownGradients(): number {
    return this.#ledger.count
  }

  /**
   * Sum of the own gradients available for the next update, as far as their vectors are kept, and of what rounding has left of
   * others. For checks.
   */
  get unused(): Blocks {
    return this.#ledger.unused
  }

  /** Headers of the predictor and its ancestors, newest first, as far as they are kept. */
  get lineage(): readonly Header[] {
    return this.#current.lineage
  }

  /** Newest sum from a neighbour for the current predictor, with its contributors. For status and checks. */
  neighbourSum(edge: number): (Batch & { readonly contributors: readonly Contributor[] }) | undefined {
    const neighbourSum = this.#edges.get(edge)?.neighbourSum
    if (neighbourSum === undefined) return undefined
    const contributors = covered(neighbourSum.coverage).map(number => this.#table.contributor(number))
    return { sum: neighbourSum.sum, count: neighbourSum.count, contributors }
  }

  /** Predictor that the neighbour holds, according to its last frame. */
  neighbourPredictor(edge: number): PredictorId | undefined {
    return this.#edges.get(edge)?.peerPredictor
  }

  /** Blocks to which the learner adds the sum of its gradients at `predictor.parameters`; `added` must follow. */
  get accumulator(): Blocks {
    return this.#ledger.accumulator
  }

  /**
   * Algorithm 3: `count` own gradients were added to the accumulator. Updates the predictor if b gradients are available.
   * @param first number of the first of these inputs, if there is a journal; the others follow it
   * @throws DivergenceError if the update is not finite and no neighbour's sum alone is the cause; the node must not be used
   *   any further
   */
  added(count: number, first?: number): void {
    if (this.#isFinal) {
      this.cancelStreaming()
      this.#ledger.discard(count)
      return
    }
    const streamed = this.#streaming
    const version = this.#outgoingSums.version
    this.#streaming = undefined
    const { batch } = this.#options
    if (typeof batch !== 'number' && this.#isUnshared) batch.countUnshared(this.#ledger.accumulator, count)
    this.#ledger.added(count, first)
    this.#outgoingSums.markChanged()
    const isUpdated = this.#updateIfFull()
    if (streamed?.isStep === isUpdated && streamed.isComplete(count, version))
      this.#sender.finishStreaming(streamed, this.#period)
    else streamed?.cancel()
  }

  /**
   * Starts streaming: the gradients of `count` inputs will be added to the accumulator block by block, no more than b lacks.
   * The driver calls `blockReady` for each block and then `added`, or `cancelStreaming`; no other event may come in between.
   * @param edges edges whose transport can take a frame
   * @param isPeriodOver whether a period ends before all blocks are added, so that sums are due
   */
  startStreaming(count: number, edges: Iterable<number>, isPeriodOver: boolean): void {
    const { fragmentBytes = Number.POSITIVE_INFINITY } = this.#options
    this.cancelStreaming()
    const { blocks } = this.#shapes.parameters
    if (blocks.length === 1 || byteLength(this.#shapes.parameters) <= fragmentBytes || this.expected) return
    const isStep = this.gradients + count >= this.needed
    const sum = new StreamingSum(count, isStep, this.#outgoingSums.version, blocks.length, this.#ledger, this.#traffic)
    for (const number of edges) {
      const edge = this.#edges.get(number)
      if (edge === undefined || edge.outgoingTransfer || edge.replyDue || edge.urgent || !this.#outbox.isInSync(edge))
        continue
      if (isStep) sum.addDestination(number, edge, this.#sums.selected())
      else if (isPeriodOver || edge.sumDue) sum.addDestination(number, edge, this.#sums.selected(edge))
    }
    if (!sum.isEmpty) this.#streaming = sum
  }

  /** The accumulator contains a block's final gradients. @returns fragments that can be sent at once */
  blockReady(block: number): OutgoingFragment[] {
    const { influence } = this.#options
    // The votes of these gradients are known. Each block is ready once.
    const ready = influence && block === 0 ? [influence.index, block] : [block]
    return ready.flatMap(one => this.#streaming?.blockReady(one) ?? [])
  }

  /** The gradients announced with `startStreaming` will not be added as they were streamed. */
  cancelStreaming(): void {
    this.#streaming?.cancel()
    this.#streaming = undefined
  }

  /**
   * Look-ahead: the running average that an update with the available gradients (fewer than b) would yield. Does not change
   * any state. Returns that of the predictor if there are no gradients.
   */
  lookAhead(): Blocks {
    const { rule, averaging } = this.#options
    const { id, parameters: before, average } = this.predictor
    const { updates } = id
    if (this.gradients === 0) return averaging.read?.(average, before) ?? average
    const sum = this.#buffers.take()
    const { count, coverages } = addUp(sum, this.#ledger.total(), this.#sums.selected())
    const { parameters } = rule.step(this.predictor, sum, count, updates, contributorCount(union(coverages)))
    this.#buffers.give(sum)
    const next = averaging.average(average, parameters, updates, before)
    return averaging.read?.(next, parameters) ?? next
  }

  /** Algorithm 4: a period T has passed. Sums become due, and lost messages are repeated. */
  tick(): void {
    this.#period++
    if ((this.#period - this.#switchedAt) % COMPACTION_PERIODS === 0) this.#sums.compact()
    this.#collectContributors()
    this.#ledger.releaseSums(this.#period)
    if (this.#announcements?.tick(this.#period)) this.#updateIfFull()
    this.#announce()
    const { holdsSums } = this
    for (const edge of this.#edges.values()) {
      const isRejected = edge.peerPredictor !== undefined && this.#gate.hasRejected(edge.peerPredictor)
      if (!isRejected) this.#outbox.scheduleRetries(edge, this.#period)
      edge.ackDue = edge.ackPending
      if (!holdsSums && this.#outbox.willBeInSync(edge) && this.#outgoingSums.isDue(edge, this.#period))
        edge.sumDue = true
    }
  }

  /** An edge session starts. The driver chooses both numbers; `session` is the same at both ends. */
  connect(edge: number, session: number, peer: string): void {
    if (this.#edges.has(edge)) this.disconnect(edge)
    const { isOrdered = false } = this.#options
    const created = new Edge(
      session,
      peer,
      this.#shapes.isLattice ? new ExchangedSums(this.#shapes, this.predictor.id, isOrdered) : undefined
    )
    created.announceBackoff.start(this.#period, 0)
    this.#edges.set(edge, created)
  }

  /**
   * The session ended: the neighbour's sum is dropped, own gradients stay. Can trigger an update, because sums that
   * overlapped with the dropped one may now be added together.
   */
  disconnect(edge: number): void {
    const removed = this.#edges.get(edge)
    if (removed === undefined) return
    this.#edges.delete(edge)
    this.#sums.edgeRemoved(removed)
    this.#outgoingSums.markChanged()
    this.#updateIfFull()
  }

  /** Algorithm 5: a frame arrived. Reports malformed bytes as a `refused` effect and changes nothing; never throws for them. */
  receive(edgeNumber: number, bytes: Uint8Array): void {
    const edge = this.#edges.get(edgeNumber)
    if (edge === undefined) return
    this.#sums.limitList(edge)
    if (this.#table.size > this.#maxContributors + FRAME_LIMITS.definitions) this.#collectContributors()
    try {
      if (isAnnouncement(bytes)) {
        if (this.#announcements?.receive(edge, bytes)) this.#announce()
      } else if (!isFragment(bytes)) this.#decode(edge, bytes)
      else if (edge.decoder.fragments.receive(bytes, edge.session, this.#shapes) && edge.deferred) {
        this.#decode(edge, edge.deferred)
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.#effects.push({ kind: 'refused', edge: edgeNumber, reason: error.message })
    }
  }

  /**
   * Adopts a predictor received outside the tree (`save` of another node) if it is better.
   * @throws FrameError
   */
  offer(bytes: Uint8Array, from: string): void {
    const saved = decodeSaved(bytes, this.#shapes, this.#table, this.#options.digest)
    this.#current.checkHeaders(saved.lineage)
    this.#offer(saved, from)
  }

  #offer(saved: Saved, from: string): void {
    const isRestored = from === this.#options.self
    const received = { predictor: saved.predictor, steps: [] }
    if (this.isBetter(saved.predictor.id) && (isRestored || this.#mayAdopt(received, from))) {
      this.#adopt(saved.lineage, received, from)
      this.#updateIfFull()
    }
  }

  /** Whether the predictor with this id is better than the current one. */
  isBetter(id: PredictorId): boolean {
    return this.#current.compare(id) > 0 && !this.#gate.hasRejected(id)
  }

  /** Whether a neighbour holds or expects this predictor or a better one, so that the tree will deliver it. */
  isExpected(id: PredictorId): boolean {
    const isAsGood = (other: PredictorId | undefined) => other !== undefined && compareIds(other, id) >= 0
    return [...this.#edges.values()].some(
      ({ peerPredictor, announced }) => isAsGood(peerPredictor) || isAsGood(announced?.id)
    )
  }

  /** The predictor and its lineage as self-contained bytes, for storage and for `offer`. */
  save(saved: Saved = this.snapshot()): Uint8Array {
    return encodeSaved(saved, this.#shapes, this.#table)
  }

  /** Content of `save` at this moment, to be encoded later. */
  snapshot(): Saved {
    return { predictor: this.predictor, lineage: this.lineage }
  }

  /** Restores what `save` returned in an earlier run. Call it before the first `connect`. */
  restore(bytes: Uint8Array): void {
    this.offer(bytes, this.#options.self)
    this.#effects = []
  }

  /** The predictor block by block, for storage. */
  saveBlocks(): SavedBlocks {
    return encodeSavedBlocks(this.snapshot(), this.#table)
  }

  /** Upper bound of the bytes of the sums in `saveSteps`; undefined if the steps are not kept, or there are none. */
  stepBytes(since: PredictorId): number | undefined {
    const steps = this.#current.stepsFrom(since)
    return steps && bytesOf(steps)
  }

  /** The steps from an ancestor of the predictor, for storage. Call it only if `stepBytes` is defined. */
  saveSteps(since: PredictorId): SavedSteps {
    const steps = this.#current.stepsFrom(since) ?? []
    const headers = this.lineage.slice(0, steps.length)
    return encodeSavedSteps({ id: this.predictor.id, headers }, steps, this.#table)
  }

  /** Restores what `saveBlocks` and `saveSteps` returned in an earlier run. Call it before the first `connect`. @throws FrameError */
  restoreBlocks({ head, blocks, steps = [] }: StoredBlocks): void {
    const assembler = new PredictorAssembler(head, blocks.length, this.#shapes, this.#table)
    for (const block of blocks) assembler.add(block)
    let saved = assembler.finish(this.#options.digest)
    for (const record of steps) saved = replaySteps(saved, record, this.#shapes, this.#options, this.#table)
    this.#offer(saved, this.#options.self)
    this.#effects = []
  }

  /** Continues the journal of earlier runs. Call it before `restore` and the first input. @throws FrameError */
  recover(records: readonly JournalRecord[]): void {
    this.#ledger.recover(recover(records, this.#options.self, this.#table))
  }

  /** Takes the journal's records since the last call. They must be durable before any frame composed after them leaves. */
  takeJournal(): readonly JournalRecord[] {
    return this.#ledger.takeRecords()
  }

  /**
   * Numbers [first, end) of inputs of an earlier run to learn again now: no batch of the lineage used them, and no neighbour holds
   * them in a sum for the current predictor. Call `closeSegment` before and after adding them.
   */
  get relearnable(): readonly [first: number, end: number] | undefined {
    return this.#ledger.relearnable
  }

  /** Inputs [first, end) of earlier runs cannot be learned again, because their rows are gone. */
  forget(first: number, end: number): void {
    this.#ledger.forget(first, end)
  }

  /** Number of inputs of earlier runs that wait to be learned again, or whose new gradients are in doubt. */
  get waiting(): number {
    return this.#ledger.waiting
  }

  /** Ends the segment of own gradients, so that the next ones form a segment of their own. */
  closeSegment(): void {
    this.#ledger.close(this.#period)
  }

  takeEffects(): Effect[] {
    const effects = this.#effects
    if (effects.length > 0) this.#effects = []
    return effects
  }

  /** Whether `frame` has something to send on this edge. */
  hasFrame(edgeNumber: number): boolean {
    const edge = this.#edges.get(edgeNumber)
    return edge !== undefined && this.#sender.hasFrame(edge)
  }

  /**
   * The next frame for a neighbour, composed from the newest state; undefined if there is nothing to send. Large frames are
   * returned as fragments (`isFragment`), after which the next call may follow at once. Call it when the transport is ready.
   */
  frame(edgeNumber: number): Uint8Array | undefined {
    const edge = this.#edges.get(edgeNumber)
    return edge && this.#sender.next(edge, this.#period)
  }

  #decode(edge: Edge, bytes: Uint8Array): void {
    const frame = decodeFrame(bytes, this.#shapes, this.#table, edge, this.#allocateSum)
    if (frame === undefined) return
    edge.deferred = undefined
    this.#processFrame(edge, edge.exchanged?.absolute(frame) ?? frame)
  }

  #processFrame(edge: Edge, frame: ReceivedFrame): void {
    if (frame.sum?.coverage) checkCount(frame.sum.count, frame.sum.coverage, this.#maxBatch)
    const comparison = this.#current.compare(frame.id)
    const isBetter = this.#outbox.isBetter(frame.id, edge) && !this.#gate.hasRejected(frame.id)
    const received = isBetter && frame.content ? this.#current.receive(frame) : undefined
    const adopted = received && this.#mayAdopt(received, edge.peer) ? received : undefined
    this.#checkInfluence(comparison === 0 ? this.predictor : adopted?.predictor, frame.sum)
    if (received) edge.isDistrusted = adopted === undefined
    if (received && !adopted) this.#announcements?.refused(edge)
    if (edge.isDistrusted && received) edge.requestBackoff.advance(this.#period)
    edge.received = frame.sequence
    edge.acknowledge(frame.received, this.#period)
    edge.peerPredictor = frame.id
    const isRepeatedAnnouncement = frame.received === 0 && frame.sequence > 1
    if (frame.content || frame.sum || frame.request || isRepeatedAnnouncement) edge.ackPending = true
    if (adopted) {
      this.#announcements?.delivered(edge)
      this.#adopt(frame.headers, adopted, edge.peer)
      // The neighbour may wait for it.
      edge.ackDue = this.#announcements !== undefined
    } else if (
      isBetter &&
      !edge.isDistrusted &&
      (!edge.requested || !sameId(edge.requested, frame.id) || frame.content)
    ) {
      edge.requested = frame.id
      edge.requestDue = true
      edge.requestBackoff.start(this.#period, edge.roundTrip)
    }
    if (comparison === 0 || adopted) {
      // Share the object, so that later comparisons are by reference.
      edge.peerPredictor = edge.lastCommon = edge.decoder.lastId = this.predictor.id
      edge.commonParent = this.lineage[0]?.parent
      edge.encoder.acknowledgeSum(frame.heldSum)
      edge.exchanged?.acknowledge(frame.heldSum, frame.received)
      if (frame.sum) this.#storeSum(edge, frame.sequence, frame.sum)
    } else if (frame.sum) this.#buffers.give(frame.sum.sum)
    if (frame.request && this.#outbox.isBehind(edge) && !this.#outbox.isInFlight(edge, this.#period))
      edge.replyDue = true
    this.#updateIfFull()
  }

  /** @param at the predictor at which the sum was computed, if this node holds or adopts it @throws FrameError */
  #checkInfluence(at: Predictor | undefined, { coverage, count = 0, sum = [] }: Partial<ReceivedSum> = {}): void {
    const { influence, rule } = this.#options
    if (influence && at && coverage)
      checkInfluence(
        influence,
        at.parameters,
        gridOf(at, rule),
        { sum, count, coverage },
        number => this.#table.contributor(number).origin
      )
  }

  /** Asks the gate about whole predictors. */
  #mayAdopt({ predictor, parent }: ReceivedPredictor, from: string): boolean {
    if (parent !== undefined || this.#gate.accepts(predictor, this.predictor)) return true
    this.#effects.push({ kind: 'rejected', predictor, from })
    return false
  }

  #storeSum(edge: Edge, sequence: number, { base, coverage, count, sum }: ReceivedSum): void {
    if (coverage === undefined) {
      this.#buffers.give(sum)
      return
    }
    // The same frame may have brought the predictor, which resets the contributor lists.
    const current = edge.decoder.reorder(coverage)
    edge.decoder.recordReceived(sequence, current, base)
    this.#sums.store(edge, { sequence, count, coverage: current, sum })
    this.#outgoingSums.markChanged()
  }

  /** Removes contributors to which neither edges nor headers nor own segments refer. */
  #collectContributors(): void {
    if (this.#table.size <= this.#maxContributors) return
    const live = new Set([this.#selfIndex])
    this.#ledger.mark(live)
    this.#current.mark(live)
    this.#sums.mark(live)
    this.#table.retain(live)
    this.#sums.contributorsRemoved()
    this.#maxContributors = 2 * live.size + SPARE_CONTRIBUTORS
  }

  #adopt(chain: readonly Header[], received: ReceivedPredictor, from: string): void {
    this.#switchPredictor(chain, received)
    this.#effects.push({ kind: 'adopted', predictor: received.predictor, from })
  }

  /** Algorithm 6, if b gradients are available. @returns whether all of them were used for an update */
  #updateIfFull(): boolean {
    if (this.gradients < this.needed || this.#isFinal) return false
    this.#announcements?.giveUp()
    const sum = this.#buffers.take()
    const { count, coverages } = addUp(sum, this.#ledger.close(this.#period), this.#sums.selected())
    const coverage = union(coverages)
    const batch = { sum, count, contributorCount: contributorCount(coverage) }
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
    const header: Header = { id: predictor.id, parent: this.predictor.id, count, coverage }
    const step = createStep(sum, this.#shapes)
    this.#switchPredictor([header], { predictor, steps: [step] })
    const isCompact = step.blocks.every(block => block instanceof Uint8Array)
    if (isCompact) this.#buffers.give(sum)
    this.#effects.push({
      kind: 'updated',
      predictor,
      header,
      batch: isCompact ? expanded(batch, step, this.#shapes.parameters) : batch
    })
    // Segments that were in doubt at the last predictor may now fill the next batch.
    return !this.#updateIfFull()
  }

  /** Whether the predictor has as many updates as is possible, which only a faulty peer can claim: learning has ended. */
  get #isFinal(): boolean {
    return this.predictor.id.updates >= FRAME_LIMITS.updates
  }

  /** Whether there are neighbours, none of which is known to hold the current predictor. */
  get #isUnshared(): boolean {
    for (const edge of this.#edges.values()) if (this.#outbox.isInSync(edge)) return false
    return this.#edges.size > 0
  }

  /** Drops sums that alone would make the update non-finite (a fault or an attack). @returns whether there was one */
  #dropOverflowingSums(): boolean {
    let wasDropped = false
    for (const [number, edge] of this.#edges) {
      if (!edge.neighbourSum?.count) continue
      const { sum, count, coverage } = edge.neighbourSum
      const alone = { sum, count, contributorCount: contributorCount(coverage) }
      if (this.#current.next(alone, this.#contributor)) continue
      this.#sums.drop(edge)
      this.#outgoingSums.markChanged()
      this.#effects.push({ kind: 'refused', edge: number, reason: 'gradient sum would make the update non-finite' })
      wasDropped = true
    }
    return wasDropped
  }

  #switchPredictor(chain: readonly Header[], received: ReceivedPredictor): void {
    const carries = this.#options.carries?.(this.predictor, received.predictor) ?? true
    this.#current.switchPredictor(chain, received)
    const { predictor } = received
    const grid = gridOf(predictor, this.#options.rule)
    this.#ledger.switchPredictor(predictor.id, this.#current.lineage, this.#period, { carries, grid })
    this.#influence?.switchPredictor(predictor.parameters)
    this.#sums.switchPredictor()
    for (const edge of this.#edges.values()) edge.switchPredictor(predictor.id)
    this.#switchedAt = this.#period
    this.#outgoingSums.markChanged()
    this.#announce()
  }

  #announce(): void {
    for (const due of this.#announcements?.due() ?? []) this.#effects.push({ kind: 'announced', ...due })
  }
}
