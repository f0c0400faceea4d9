/**
 * ADMB as a state machine (Dekel et al., "Robust Distributed Online Prediction", Algorithms 3 to 6), with extensions for real
 * networks: precedence by origin, predictor ids, incarnations, coverages, edge sessions, sums only between nodes that hold the
 * same predictor, immediate forwarding, carry-over. It has no clock, no randomness and no I/O: the driver passes events (own
 * gradients, ticks, frames, edges up and down), executes the effects, and asks for frames when the transport can take one.
 * The simulator and the libp2p peer run the same code.
 */
import { DivergenceError } from '../base/errors.js'
import type { Blocks } from '../learner/types.js'
import { Admission } from './admission.js'
import { Announcements, isAnnouncement } from './announcements.js'
import { OwnAscents } from './ascent.js'
import { Authenticity } from './authenticity.js'
import { FrameError } from './bytes.js'
import { type Contributor, ContributorTable, type CoveredContributor } from './contributors.js'
import { covered, segmentsOf } from './coverage.js'
import { CurrentPredictor, type ReceivedPredictor } from './current-predictor.js'
import { Edge } from './edge.js'
import { encodeProof, isProof } from './equivocation.js'
import { ExchangedSums } from './exchanged-sums.js'
import { FrameReceiver } from './frame-receiver.js'
import { FrameSender } from './frame-sender.js'
import { OwnInfluence } from './influence.js'
import { type JournalRecord, recover } from './journal.js'
import type { QuarantinedPredictor } from './jumps.js'
import { gridOf } from './lazy-grid.js'
import { Ledger } from './ledger.js'
import { FRAME_LIMITS, MAX_BATCH, WAIT_BATCHES } from './limits.js'
import { NeighbourSums } from './neighbour-sums.js'
import { NodeStorage, type StoredBlocks } from './node-storage.js'
import type { AdmbOptions, Effect } from './options.js'
import { Outbox } from './outbox.js'
import { OutgoingSums } from './outgoing-sums.js'
import { Pace } from './pace.js'
import { type Batch, batchOf, type Header, type Predictor } from './predictor.js'
import { compareIds, type PredictorId } from './predictor-id.js'
import { Quotas } from './quotas.js'
import { Receipts } from './receipts.js'
import type { Saved } from './saved.js'
import { maximumChainBytes } from './step.js'
import { Streaming } from './streaming.js'
import type { OutgoingFragment } from './streaming-sum.js'
import { Traffic, type TrafficBytes } from './traffic.js'
import { Updater } from './updater.js'
import { BufferPool, type Shapes, shapesOf } from './vectors.js'
import { isVoucher } from './vouchers.js'

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
  readonly #shapes: Shapes
  readonly #current: CurrentPredictor
  readonly #outbox: Outbox
  readonly #table = new ContributorTable()
  readonly #selfIndex: number
  readonly #influence: OwnInfluence | undefined
  readonly #ledger: Ledger
  readonly #edges = new Map<number, Edge>()
  readonly #buffers: BufferPool
  readonly #sums: NeighbourSums
  readonly #outgoingSums: OutgoingSums
  /** Undefined if a changed sum is due in each period. */
  readonly #pace: Pace | undefined
  readonly #sender: FrameSender
  readonly #receiver: FrameReceiver
  readonly #updater: Updater
  readonly #streaming: Streaming
  /** Stores the predictor and gives it to nodes outside the tree. */
  readonly storage: NodeStorage
  /** Signs receipts for the own parts of sums; undefined without a signer. */
  readonly receipts: Receipts | undefined
  readonly #authenticity: Authenticity
  readonly #admission: Admission
  readonly #ownAscents = new OwnAscents()
  readonly #quotas: Quotas | undefined
  readonly #traffic: Traffic
  /** Undefined for predictors that need no announcement, because they are as short as one, and for precedence by sender. */
  readonly #announcements: Announcements | undefined
  #watched: { readonly edge: number; readonly visit: () => void } | undefined
  #effects: Effect[] = []
  #period = 0
  /** Period of the last change of predictor. */
  #switchedAt = 0
  /** Number of contributors above which those that are not used are removed. */
  #maxContributors = SPARE_CONTRIBUTORS

  constructor(options: AdmbOptions) {
    const [least, most] =
      typeof options.batch === 'number' ? [options.batch, options.batch] : [options.batch.min, options.batch.max]
    if (!Number.isSafeInteger(least) || least < 1 || most > MAX_BATCH) {
      throw new RangeError(`batch must be an integer from 1 to ${MAX_BATCH}, not ${least}`)
    }
    if (options.precedence === 'sender' && options.carry) {
      throw new RangeError("precedence 'sender' requires carry 0, because nodes can return to an earlier predictor")
    }
    const { self, incarnation, nonce = 0, layout, initial, batch, carry = 0, lineage = 1024, jumps } = options
    if (jumps && options.signer === undefined) throw new RangeError('a rule for jumps requires a signer')
    const { precedence = 'origin', pushBytes = 65536, known, journal = false } = options
    this.#options = options
    const isLattice = options.rule.grid !== undefined
    this.#shapes = { ...shapesOf(layout, options), isLattice }
    const wholeBytes = maximumChainBytes(this.#shapes)
    const headers = carry === 0 && !journal && !jumps ? 1 : lineage
    this.#current = new CurrentPredictor(initial, this.#shapes, options, batch, headers, known)
    this.#outbox = new Outbox(this.#current, { self, precedence, pushBytes, wholeBytes })
    const contributor: Contributor = { origin: self, incarnation, nonce }
    this.#selfIndex = this.#table.indexOf(contributor)
    this.#buffers = new BufferPool(layout)
    this.#authenticity = new Authenticity(options.signer, self, this.#table, options.isContributor)
    this.#authenticity.certify(this.#selfIndex)
    const { quota } = options
    this.#quotas = quota && new Quotas(quota, number => this.#table.contributor(number).origin)
    const report = (effect: Effect) => this.#effects.push(effect)
    this.#admission = new Admission({
      ...options,
      current: this.#current,
      edges: this.#edges,
      authenticity: this.#authenticity,
      ownAscents: this.#ownAscents,
      quotas: this.#quotas,
      report
    })
    this.receipts = options.signer && new Receipts(options.signer, contributor, isLattice)
    this.#influence = options.influence && new OwnInfluence(options.influence, initial.parameters)
    this.#ledger = new Ledger({
      buffers: this.#buffers,
      carry,
      contributor: this.#selfIndex,
      id: initial.id,
      grid: gridOf(initial, options.rule),
      marksElements: options.marksElements,
      run: journal ? contributor : undefined,
      influence: this.#influence,
      noise: options.noise,
      receipts: this.receipts
    })
    this.#sums = new NeighbourSums(self, this.#table, this.#edges, this.#buffers)
    this.#pace = options.adaptsPeriod ? new Pace() : undefined
    this.#outgoingSums = new OutgoingSums(this.#ledger, this.#sums, this.#buffers, this.#pace)
    this.#traffic = new Traffic(isLattice)
    if (wholeBytes > pushBytes && precedence === 'origin')
      this.#announcements = new Announcements(this.#edges, this.#current, this.#outbox)
    const { rule, averaging, influence, ascent, fragmentBytes, allocate } = options
    const parts = {
      shapes: this.#shapes,
      table: this.#table,
      buffers: this.#buffers,
      current: this.#current,
      outbox: this.#outbox,
      outgoingSums: this.#outgoingSums,
      announcements: this.#announcements,
      ledger: this.#ledger,
      sums: this.#sums,
      authenticity: this.#authenticity
    }
    const traffic = this.#traffic
    this.#sender = new FrameSender({ ...parts, traffic, fragmentBytes, allocate })
    this.#updater = new Updater({ ...parts, rule, averaging, contributor })
    this.#receiver = new FrameReceiver({
      ...parts,
      rule,
      influence,
      ascent,
      updater: this.#updater,
      ownAscents: this.#ownAscents,
      quotas: this.#quotas,
      maxBatch: most,
      report,
      admission: this.#admission,
      adopt: (headers, received, from) => this.#adopt(headers, received, from)
    })
    this.#streaming = new Streaming({
      ...parts,
      edges: this.#edges,
      sender: this.#sender,
      traffic,
      influence,
      fragmentBytes
    })
    this.storage = new NodeStorage(this.#current, this.#shapes, this.#table, options, this.#authenticity)
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

  /** The predictor of another node that waits for vouchers since last; mostly undefined. */
  get quarantined(): QuarantinedPredictor | undefined {
    return this.#admission.quarantined
  }

  /** A better predictor of a neighbour that the gate has refused; mostly undefined. */
  get refused(): Pick<QuarantinedPredictor, 'id' | 'from'> | undefined {
    for (const { peer, peerPredictor: id, isDistrusted } of this.#edges.values()) {
      const isRefused = id !== undefined && (isDistrusted || this.#admission.hasRefused(id))
      if (isRefused && this.#current.compare(id) > 0) return { id, from: peer }
    }
    return undefined
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

  /** Their sum, as it is sent. For checks. */
  get ownSum(): Batch {
    const { sum, count } = this.#ledger.total()
    return { sum, count }
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
  neighbourSum(edge: number): (Batch & { readonly contributors: readonly CoveredContributor[] }) | undefined {
    const neighbourSum = this.#edges.get(edge)?.neighbourSum
    if (neighbourSum === undefined) return undefined
    const { sum, count, coverage } = neighbourSum
    const contributors = covered(coverage).map(number => ({
      ...this.#table.contributor(number),
      segments: segmentsOf(coverage, number)
    }))
    return { sum, count, contributors }
  }

  /** Calls `visit` after each frame of an edge that changes the node, before an update uses the sum of that edge. For audits. */
  watchSum(edge: number, visit: () => void): void {
    this.#watched = { edge, visit }
  }

  unwatchSum(): void {
    this.#watched = undefined
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
    const { version } = this.#outgoingSums
    const { batch } = this.#options
    if (typeof batch !== 'number' && this.#isUnshared) batch.countUnshared(this.#ledger.accumulator, count)
    this.#ledger.added(count, first)
    this.#admission.added(count)
    this.#outgoingSums.markChanged()
    this.#streaming.finish(count, version, this.#updateIfFull(), this.#period)
  }

  /**
   * Starts streaming: the gradients of `count` inputs will be added to the accumulator block by block, no more than b lacks.
   * The driver calls `blockReady` for each block and then `added`, or `cancelStreaming`; no other event may come in between.
   * @param edges edges whose transport can take a frame
   * @param isPeriodOver whether a period ends before all blocks are added, so that sums are due
   */
  startStreaming(count: number, edges: Iterable<number>, isPeriodOver: boolean): void {
    if (this.expected || this.#options.noise) this.cancelStreaming()
    else this.#streaming.start(count, edges, this.#missing, isPeriodOver, this.#period)
  }

  /** The accumulator contains a block's final gradients. @returns fragments that can be sent at once */
  blockReady(block: number): OutgoingFragment[] {
    return this.#streaming.blockReady(block)
  }

  /** The gradients announced with `startStreaming` will not be added as they were streamed. */
  cancelStreaming(): void {
    this.#streaming.cancel()
  }

  /**
   * Look-ahead: the running average that an update with the available gradients (fewer than b) would yield. Does not change
   * any state. Returns that of the predictor if there are no gradients. It contains own gradients without noise.
   */
  lookAhead(): Blocks {
    return this.#updater.lookAhead()
  }

  /**
   * Algorithm 4: a period T has passed. Sums become due, and lost messages are repeated.
   * @param elapsed number of periods since the last tick; more than 1 if the node was busy. Only `quota` depends on it. @default 1
   */
  tick(elapsed = 1): void {
    this.#period++
    this.#quotas?.elapse(elapsed)
    if ((this.#period - this.#switchedAt) % COMPACTION_PERIODS === 0) this.#sums.compact()
    this.#collectContributors()
    this.#ledger.releaseSums(this.#period)
    if (this.#announcements?.tick(this.#period)) this.#updateIfFull()
    this.#admission.tick(this.#period)
    this.#adoptVouched()
    this.#announce()
    const { holdsSums } = this
    const missing = this.#missing
    for (const edge of this.#edges.values()) {
      if (edge.peerPredictor === undefined || !this.#admission.isRefused(edge.peerPredictor))
        this.#outbox.scheduleRetries(edge, this.#period)
      edge.ackDue = edge.ackPending
      if (holdsSums || !this.#outbox.willBeInSync(edge)) continue
      if (!this.#outgoingSums.isDue(edge, this.#period, missing)) continue
      // A further sum would displace one to which steps of the neighbour refer. A request is acknowledged in any case.
      if (edge.exchanged?.isFull) edge.requestDue = true
      else edge.sumDue = true
    }
  }

  /** An edge session starts. The driver chooses both numbers; `session` is the same at both ends. */
  connect(edge: number, session: number, peer: string): void {
    if (this.#edges.has(edge)) this.disconnect(edge)
    if (this.#authenticity.isExcluded(peer)) {
      this.#refuse(edge, peer)
      return
    }
    for (const proof of this.#authenticity.proofs)
      this.#effects.push({ kind: 'announced', edge, bytes: encodeProof(session, proof) })
    const created = new Edge(
      session,
      peer,
      this.#shapes.isLattice ? new ExchangedSums(this.#shapes, this.predictor.id, this.#options) : undefined
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
    this.#admission.disconnect(edge)
    this.#sums.edgeRemoved(removed)
    this.#outgoingSums.markChanged()
    this.#updateIfFull()
  }

  /**
   * The neighbour's transport reports, in order with its frames, that the neighbour has taken this node's frames.
   * @param sequence of the last one, counted from 1 in each session. @default all frames so far
   */
  taken(edgeNumber: number, sequence?: number): void {
    const edge = this.#edges.get(edgeNumber)
    if (edge) edge.taken = Math.max(edge.taken, sequence ?? edge.sent)
  }

  /** Algorithm 5: a frame arrived. Reports malformed bytes as a `refused` effect and changes nothing; never throws for them. */
  receive(edgeNumber: number, bytes: Uint8Array): void {
    const edge = this.#edges.get(edgeNumber)
    if (edge === undefined) return
    this.#sums.limitList(edge)
    if (this.#table.size > this.#maxContributors + FRAME_LIMITS.definitions) this.#collectContributors()
    try {
      if (isProof(bytes)) this.#authenticity.receiveProof(bytes, edge.session)
      else if (isVoucher(bytes)) this.#admission.receiveVoucher(edgeNumber, bytes)
      else if (isAnnouncement(bytes)) {
        if (this.#announcements?.receive(edge, bytes)) this.#announce()
      } else if (this.#receiver.receive(edge, bytes, this.#period)) {
        if (edgeNumber === this.#watched?.edge) this.#watched.visit()
        this.#updateIfFull()
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.#effects.push({ kind: 'refused', edge: edgeNumber, reason: error.message })
    }
    this.#exclude(isProof(bytes) ? edge : undefined)
    this.#adoptVouched()
  }

  /**
   * Adopts a predictor received outside the tree (`storage.save` of another node) if it is better.
   * @throws FrameError
   */
  offer(bytes: Uint8Array, from: string): void {
    this.#offer(this.storage.read(bytes), from)
  }

  #offer(saved: Saved, from: string): void {
    const isRestored = from === this.#options.self
    const {
      predictor,
      lineage,
      attestation,
      claims = new Map()
    } = isRestored ? this.#authenticity.restored(saved) : saved
    const received = { predictor, steps: [], attestation }
    if (!this.isBetter(predictor.id)) return
    if (!isRestored) {
      this.#authenticity.check({ id: predictor.id, headers: lineage, attestation }, claims)
      this.#exclude()
    }
    if (isRestored || this.#admission.accepts(received, lineage, from)) {
      this.#adopt(lineage, received, from)
      this.#updateIfFull()
    }
  }

  /** Whether the predictor with this id is better than the current one. */
  isBetter(id: PredictorId): boolean {
    return this.#current.compare(id) > 0 && !this.#admission.isRefused(id)
  }

  /** Whether a neighbour holds or expects this predictor or a better one, so that the tree will deliver it. */
  isExpected(id: PredictorId): boolean {
    const isAsGood = (other: PredictorId | undefined) => other !== undefined && compareIds(other, id) >= 0
    return [...this.#edges.values()].some(
      ({ peerPredictor, announced }) => isAsGood(peerPredictor) || isAsGood(announced?.id)
    )
  }

  /** Restores what `storage.save` returned in an earlier run. Call it before the first `connect`. */
  restore(bytes: Uint8Array): void {
    this.offer(bytes, this.#options.self)
    this.#effects = []
  }

  /** Restores a stored predictor. Call it before the first `connect`. @throws FrameError */
  restoreBlocks(stored: StoredBlocks): void {
    this.#offer(this.storage.readBlocks(stored), this.#options.self)
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

  /** Ends the sessions with makers against whom there is a new proof, and passes it on. @param source edge that has sent it */
  #exclude(source?: Edge): void {
    for (const proof of this.#authenticity.takeNew()) {
      this.#effects.push({ kind: 'excluded', maker: proof.maker })
      for (const [number, edge] of [...this.#edges]) {
        if (edge.peer === proof.maker) {
          this.disconnect(number)
          this.#refuse(number, edge.peer)
        } else if (edge !== source)
          this.#effects.push({ kind: 'announced', edge: number, bytes: encodeProof(edge.session, proof) })
      }
    }
  }

  #refuse(edge: number, peer: string): void {
    this.#effects.push({ kind: 'refused', edge, reason: `${peer} has signed different headers with one name` })
  }

  #adoptVouched(): void {
    for (const { received, headers, from } of this.#admission.takeVouched()) {
      this.#adopt(headers, received, from)
      for (const edge of this.#edges.values()) {
        if (edge.peer !== from) continue
        this.#announcements?.delivered(edge)
        edge.isDistrusted = false
        edge.ackDue = true
      }
      this.#updateIfFull()
    }
  }

  /** Removes contributors to which neither edges nor headers nor own segments refer. */
  #collectContributors(): void {
    if (this.#table.size <= this.#maxContributors) return
    const live = new Set([this.#selfIndex])
    this.#ledger.mark(live)
    this.#current.mark(live)
    this.#admission.mark(live)
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
    const update = this.#updater.make(this.#period)
    if (update === undefined) {
      if (!this.#dropOverflowingSums()) {
        throw new DivergenceError(
          `update ${this.predictor.id.updates + 1} gives numbers that are not finite: scale the features, or use a smaller step (--rule NAME,step=…)`
        )
      }
      this.#updateIfFull()
      return false
    }
    const { predictor, header, step, batch } = update
    this.#switchPredictor([header], { predictor, steps: [step] })
    this.#effects.push({ kind: 'updated', predictor, header, batch })
    // Segments that were in doubt at the last predictor may now fill the next batch.
    return !this.#updateIfFull()
  }

  /** Whether the predictor has as many updates as is possible, which only a faulty peer can claim: learning has ended. */
  get #isFinal(): boolean {
    return this.predictor.id.updates >= FRAME_LIMITS.updates
  }

  /** Number of gradients that the next update lacks. */
  get #missing(): number {
    return this.needed - this.gradients
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
      if (edge.neighbourSum === undefined || !this.#updater.isOverflowing(edge.neighbourSum)) continue
      this.#sums.drop(edge)
      this.#outgoingSums.markChanged()
      this.#effects.push({ kind: 'refused', edge: number, reason: 'gradient sum would make the update non-finite' })
      wasDropped = true
    }
    return wasDropped
  }

  #switchPredictor(chain: readonly Header[], received: ReceivedPredictor): void {
    this.#measureOwn()
    const carries = this.#options.carries?.(this.predictor, received.predictor) ?? true
    this.#current.switchPredictor(chain, received)
    const { predictor } = received
    this.#quotas?.switchPredictor(chain.slice(0, received.steps.length))
    const grid = gridOf(predictor, this.#options.rule)
    this.#ledger.switchPredictor(predictor.id, this.#current.lineage, this.#period, { carries, grid })
    this.#influence?.switchPredictor(predictor.parameters)
    this.#sums.switchPredictor()
    for (const edge of this.#edges.values()) edge.switchPredictor(predictor.id)
    this.#switchedAt = this.#period
    this.#pace?.switchPredictor(this.#period)
    this.#outgoingSums.markChanged()
    this.#announce()
  }

  /** The sums of neighbours are judged in units of what the own ones do. */
  #measureOwn(): void {
    const { ascent } = this.#options
    if (ascent === undefined || this.ownGradients === 0) return
    const coverage = { contributors: [this.#selfIndex], segments: [1] }
    const after = this.#updater.parametersAfter({ ...this.ownSum, coverage })
    this.#ownAscents.add(ascent(this.predictor.parameters, after))
  }

  #announce(): void {
    for (const due of this.#announcements?.due() ?? []) this.#effects.push({ kind: 'announced', ...due })
  }
}
