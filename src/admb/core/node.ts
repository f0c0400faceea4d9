/**
 * A node of ADMB (Dekel et al., "Robust Distributed Online Prediction", Algorithms 3 to 6).
 * `sim/reference/admb.ts` states the same algorithm in a few pages. The constructor composes the
 * parts:
 *
 * | paper | method | part |
 * | --- | --- | --- |
 * | Algorithm 3: an input arrives | `added` | `Ledger`, `OwnSum` |
 * | Algorithm 4: periodic message to a neighbour | `tick`, `frame` | `OutgoingSums`, `PushPolicy`, `FrameSender` |
 * | Algorithm 5: a message arrives | `receive` | `FrameReceiver`, `NeighbourSums` |
 * | Algorithm 6: update | after each event | `Updater`, `CurrentPredictor` |
 *
 * The extensions for real networks are precedence by origin, predictor ids, incarnations,
 * coverages, edge sessions, sums only between nodes that hold the same predictor, immediate
 * forwarding and carry-over. A node has no clock, no randomness and no I/O: the driver passes
 * events (own gradients, ticks, frames, edges up and down), executes the effects, and asks for
 * frames when the transport can take one. The simulator and the libp2p peer run the same code.
 */
import type { Blocks, Unsent } from '../../learning/types.js'
import type { MarkElements } from '../../numeric/sums.js'
import { type Contributor, ContributorTable } from '../state/coverage.js'
import type { Header, Predictor } from '../state/predictor.js'
import { compareIds, type PredictorId, sameId } from '../state/predictor-id.js'
import { gridOf } from '../state/rounding.js'
import { BufferPool, maximumChainBytes, type Shapes, shapesOf } from '../state/vectors.js'
import { OwnInfluence } from '../trust/influence.js'
import { createTrust, isTrustMessage, type Trust } from '../trust/trust.js'
import { FrameError } from '../wire/bytes.js'
import { Traffic } from '../wire/encode.js'
import { ExchangedSums } from '../wire/exchanged-sums.js'
import { FRAME_LIMITS, HISTORY_UPDATES, MAX_BATCH } from '../wire/frame.js'
import type { Saved } from '../wire/saved.js'
import { Announcements, isAnnouncement } from './announcements.js'
import { CurrentPredictor, type ReceivedPredictor } from './current-predictor.js'
import { Edge } from './edge.js'
import { FrameReceiver } from './frame-receiver.js'
import { FrameSender } from './frame-sender.js'
import { type JournalRecord, recover } from './journal.js'
import { type GradientAccount, Ledger } from './ledger.js'
import { isEndNotice, type MasterEdge, Mastership } from './mastership.js'
import { NeighbourSums } from './neighbour-sums.js'
import { NodeInspection } from './node-inspection.js'
import { NodeStorage, type StoredBlocks } from './node-storage.js'
import type { AdmbOptions, Effect } from './options.js'
import { OutgoingSums, Pace } from './outgoing-sums.js'
import { OwnSum } from './own-sum.js'
import { PushPolicy } from './push-policy.js'
import { Updater } from './updater.js'

/** Number of unused contributors that are kept. */
const SPARE_CONTRIBUTORS = 4
/** While the predictor stays the same, contributor lists are compacted after this many periods. */
const COMPACTION_PERIODS = 256

/**
 * A node of ADMB as a state machine: events go in, effects and frames come out.
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
  /** Layouts of parameters and rule state. */
  readonly shapes: Shapes
  /** Stores the predictor and gives it to nodes outside the tree. */
  readonly storage: NodeStorage
  /** Details that statuses, checks and tests read. */
  readonly inspect: NodeInspection
  readonly #options: Omit<AdmbOptions, 'initial'>
  /** This run, as one of the contributors. */
  readonly #self: number
  readonly #table: ContributorTable
  /** Open sessions by edge. */
  readonly #edges = new Map<number, Edge>()
  /** The predictor, its lineage and the steps that led to it. */
  readonly #current: CurrentPredictor
  /** Own gradients: which they are, and their sum. */
  readonly #ledger: Ledger
  readonly #own: OwnSum
  /** Sums of neighbours. */
  readonly #sums: NeighbourSums
  readonly #outgoingSums: OutgoingSums
  readonly #push: PushPolicy
  readonly #receiver: FrameReceiver
  readonly #sender: FrameSender
  readonly #updater: Updater
  /** Undefined if predictors are as short as an announcement, and for precedence by sender. */
  readonly #announcements: Announcements | undefined
  /** Undefined if a changed sum is due in each period. */
  readonly #pace: Pace | undefined
  /** Undefined unless an option requires it. */
  readonly #trust: Trust | undefined
  /** Undefined if every node makes updates. */
  readonly #mastership: Mastership | undefined
  /** Undefined if own sums are not bounded. */
  readonly #influence: OwnInfluence | undefined
  readonly #effects: Effect[] = []
  /** Number of ticks. */
  #period = 0
  /** Period of the last change of predictor. */
  #switchedAt = 0
  /** Number of contributors above which unused ones are removed. */
  #maxContributors = SPARE_CONTRIBUTORS

  /** @throws RangeError if an option is out of range */
  constructor({ initial, ...options }: AdmbOptions) {
    // Nothing below keeps the initial predictor, which a long model has soon left behind.
    checkOptions(options)
    const { self, incarnation, nonce = 0, layout, rule, averaging, influence } = options
    const { carry = 0, lineage = 1024, precedence = 'origin', pushBytes = 65536, journal = false } = options
    const { downloadBytes = Number.POSITIVE_INFINITY } = options
    const isLattice = rule.grid !== undefined
    const shapes: Shapes = { ...shapesOf(layout, options), isLattice, isClustered: options.budget !== undefined }
    const wholeBytes = maximumChainBytes(shapes)
    const contributor: Contributor = { origin: self, incarnation, nonce }
    const buffers = new BufferPool(layout)
    const report = (effect: Effect) => {
      this.#effects.push(effect)
    }
    const { contributors: table = new ContributorTable() } = options
    const edges = this.#edges
    this.#table = table
    if (options.contributors) this.#maxContributors = Number.POSITIVE_INFINITY
    this.#options = options
    this.shapes = shapes
    this.#self = table.indexOf(contributor)
    this.#current = new CurrentPredictor(initial, shapes, options, lineage)
    this.#trust = createTrust({ options, current: this.#current, table, edges, report })
    this.#current.trust = this.#trust
    this.#trust?.authenticity?.certify(this.#self)
    this.#influence = influence && new OwnInfluence(influence, initial.parameters)
    const { noise, budget } = options
    this.#own = new OwnSum(layout, gridOf(initial, rule), { influence: this.#influence, noise, budget })
    this.#ledger = new Ledger({
      own: this.#own,
      carry,
      history: { updates: HISTORY_UPDATES, periods: options.history ?? Number.POSITIVE_INFINITY },
      repeats: options.repeats,
      contributor: this.#self,
      id: initial.id,
      run: journal ? contributor : undefined
    })
    this.#sums = new NeighbourSums(this.#self, table, edges, buffers, this.#trust)
    this.#pace = options.adaptsPeriod ? new Pace() : undefined
    this.#outgoingSums = new OutgoingSums(this.#ledger, this.#sums, buffers, this.#pace, shapes)
    const download = (predictor: PredictorId, from: string) => report({ kind: 'offered', predictor, from })
    this.#push = new PushPolicy(this.#current, {
      self,
      precedence,
      pushBytes,
      wholeBytes,
      download: wholeBytes >= downloadBytes ? download : undefined
    })
    const isAnnounced = wholeBytes > pushBytes && precedence === 'origin'
    this.#announcements = isAnnounced ? new Announcements(edges, this.#current, this.#push) : undefined
    const traffic = new Traffic(isLattice)
    const { algorithm } = options
    this.#mastership =
      algorithm &&
      new Mastership({
        algorithm,
        contributor,
        table,
        edges,
        current: this.#current,
        ledger: this.#ledger,
        sums: this.#sums,
        batch: () => this.batch,
        send: message => report({ kind: 'announced', ...message })
      })
    const parts = {
      shapes,
      table,
      buffers,
      edges,
      current: this.#current,
      push: this.#push,
      outgoingSums: this.#outgoingSums,
      announcements: this.#announcements,
      ledger: this.#ledger,
      sums: this.#sums,
      mastership: this.#mastership,
      trust: this.#trust
    }
    const { fragmentBytes, allocate, batch } = options
    this.#sender = new FrameSender({ ...parts, traffic, fragmentBytes, allocate })
    this.#updater = new Updater({
      ...parts,
      batch,
      rule,
      averaging,
      contributor,
      report,
      switchPredictor: (headers, received) => this.#switchPredictor(headers, received)
    })
    this.#receiver = new FrameReceiver({
      ...parts,
      maxBatch: typeof batch === 'number' ? batch : batch.max,
      adopt: (headers, received, from) => this.#adopt(headers, received, from)
    })
    this.storage = new NodeStorage(this.#current, shapes, table, options, this.#trust?.authenticity)
    const period = () => this.#period
    const inspected = { ...parts, own: this.#own, influence: this.#influence, traffic, period, effects: this.#effects }
    this.inspect = new NodeInspection(inspected)
  }

  get predictor(): Predictor {
    return this.#current.predictor
  }

  /** Headers of the predictor and its ancestors, newest first, as far as they are kept. Valid until the next event. */
  get lineage(): readonly Header[] {
    return this.#current.lineage
  }

  /** b of the current predictor. */
  get batch(): number {
    return this.#updater.batch
  }

  /**
   * Number of gradients with which the node updates: `batch`, or more while it waits for an
   * announced predictor, or for neighbours to receive the current one.
   */
  get needed(): number {
    return this.#updater.needed
  }

  /** An announced better predictor, for which this node waits; undefined without one. */
  get expected(): PredictorId | undefined {
    return this.#announcements?.expected
  }

  /** Whether a neighbour has announced a better predictor, or has not received the current one. */
  get isWaiting(): boolean {
    return this.#announcements?.isWaiting ?? false
  }

  /** Whether sums wait for an expected predictor, or for the current one to reach a neighbour. */
  get holdsSums(): boolean {
    return this.#announcements?.holdsSums ?? false
  }

  /** Number of available gradients, own and neighbours'. At `needed` the node updates. */
  get gradients(): number {
    return this.#updater.gradients
  }

  /**
   * Number of own gradients that the node takes at once: until its next update, or until it must
   * wait for others. 0 only for DMB, after which inputs must wait.
   */
  get room(): number {
    const missing = Math.max(1, this.needed - this.gradients)
    return this.#mastership?.room(missing) ?? missing
  }

  /** DMB: the peers for whose gradients this node waits. Empty for other algorithms. */
  get waitsFor(): readonly string[] {
    return this.#mastership?.waitsFor ?? []
  }

  /** Number of own gradients available for the next update, including those carried over. */
  get ownGradients(): number {
    return this.#ledger.count
  }

  /** Numbers of the own gradients of this run by what has become of them. */
  get account(): GradientAccount {
    return this.#ledger.account
  }

  /** Whether the predictor with this id is better than the current one, and may be adopted. */
  isBetter(id: PredictorId): boolean {
    return this.#current.compare(id) > 0 && !this.#trust?.isRefused(id)
  }

  /** Whether a neighbour has named its predictor, and none holds or expects a better one. */
  get hasJoined(): boolean {
    let isInformed = false
    for (const { peerPredictor, announcements } of this.#edges.values()) {
      const announced = announcements.received
      if (peerPredictor === undefined) continue
      isInformed = true
      if (this.isBetter(peerPredictor) || (announced && this.isBetter(announced.id))) return false
    }
    return isInformed
  }

  /** Whether the tree will deliver it: a neighbour holds or expects one as good or better. */
  isExpected(id: PredictorId): boolean {
    const isAsGood = (other: PredictorId | undefined) => other !== undefined && compareIds(other, id) >= 0
    return [...this.#edges.values()].some(
      ({ peerPredictor, announcements }) => isAsGood(peerPredictor) || isAsGood(announcements.received?.id)
    )
  }

  /** Blocks to which the learner adds gradients at `predictor.parameters`; `added` must follow. */
  get accumulator(): Blocks {
    return this.#own.accumulator
  }

  /** With a budget of elements: what local steps have contributed, and the node has not sent yet. */
  get unsent(): Unsent | undefined {
    return this.#own.unsent
  }

  /**
   * Algorithm 3: `count` own gradients were added to the accumulator. Updates the predictor if b
   * gradients are available.
   * @param first number of the first of these inputs, if there is a journal; the others follow it
   * @param mark adds the elements of the accumulator's first block that they have changed to a
   * support; without it, a long block takes passes over all of its elements
   * @throws DivergenceError if the update is not finite and no neighbour's sum alone is the cause;
   * the node must not be used any further
   */
  added(count: number, first?: number, mark?: MarkElements): void {
    if (this.#updater.isFinal) {
      this.#own.discard()
      this.#ledger.discard(count)
      return
    }
    const { batch } = this.#options
    if (typeof batch !== 'number' && this.#isUnshared) batch.countUnshared(this.accumulator, count)
    this.#own.recordWrites(mark)
    this.#ledger.added(count, first)
    this.#trust?.recordInputs(count)
    if (this.#mastership?.isSegmentFull) this.#ledger.close(this.#period)
    this.#outgoingSums.markChanged()
    this.#updater.updateIfFull(this.#period)
  }

  /**
   * Updates with the available gradients, although they are fewer than b. Call it when inputs have
   * ended and nothing has changed for some time. Does nothing with quotas, or while a better
   * predictor is expected.
   */
  useRemainder(): void {
    if (!this.#trust?.hasQuotas && this.gradients > 0 && !this.isWaiting) this.#updater.updateIfFull(this.#period, true)
  }

  /**
   * Look-ahead: the running average that an update with the available gradients (fewer than b)
   * would yield, or that of the predictor if there are none. It contains own gradients without
   * noise. The state does not change.
   */
  lookAhead(): Blocks {
    return this.#updater.lookAhead()
  }

  /**
   * Algorithm 4: a period T has passed. Sums become due, and lost messages are repeated.
   * @param elapsed number of periods since the last tick; more than 1 if the node was busy. Only
   * `quota` depends on it. @default 1
   */
  tick(elapsed = 1): void {
    this.#period++
    if ((this.#period - this.#switchedAt) % COMPACTION_PERIODS === 0) this.#sums.compact()
    this.#collectContributors()
    this.#ledger.releaseSums(this.#period)
    if (this.#announcements?.tick(this.#period)) this.#updater.updateIfFull(this.#period)
    this.#trust?.tick(this.#period, elapsed)
    this.#mastership?.tick(this.#period)
    this.#adoptVouched()
    this.#announce()
    const { holdsSums } = this
    const missing = this.#missing
    for (const edge of this.#edges.values()) {
      if (edge.peerPredictor === undefined || !this.#trust?.isRefused(edge.peerPredictor))
        this.#push.scheduleRetries(edge, this.#period)
      edge.due.acknowledgement = edge.due.isContentUnacknowledged
      if (holdsSums || !this.#push.willBeInSync(edge)) continue
      if (this.#mastership && !this.#mastership.sendsTo(edge)) continue
      if (!this.#outgoingSums.isDue(edge, this.#period, missing)) continue
      // A further sum would displace one to which steps of the neighbour refer. A request is
      // acknowledged in any case.
      if (edge.exchanged?.isFull) edge.due.request = true
      else edge.due.sum = true
    }
  }

  /** An edge session starts. The driver chooses both numbers. Both ends have the same `session`. */
  connect(edge: number, session: number, peer: string): void {
    if (this.#edges.has(edge)) this.disconnect(edge)
    if (this.#trust?.isExcluded(peer)) {
      this.#refuse(edge, peer)
      return
    }
    this.#trust?.connect(edge, session)
    const created = new Edge(
      session,
      peer,
      this.shapes.isLattice ? new ExchangedSums(this.shapes, this.predictor.id, this.#options) : undefined,
      this.#table.dictionary
    )
    created.pushed.helloBackoff.start(this.#period, 0)
    this.#edges.set(edge, created)
  }

  /**
   * The session ended: the neighbour's sum is dropped, own gradients stay. Can trigger an update,
   * because sums that overlapped with the dropped one may now be added together.
   * @param hasLeft whether the neighbour has left the network, rather than the edge
   */
  disconnect(edge: number, hasLeft = false): void {
    const removed = this.#edges.get(edge)
    if (removed === undefined) return
    if (hasLeft) this.#mastership?.left(removed)
    this.#edges.delete(edge)
    this.#trust?.disconnect(edge)
    this.#sums.edgeRemoved(removed)
    this.#outgoingSums.markChanged()
    this.#updater.updateIfFull(this.#period)
  }

  /** The host knows which edge leads to the master, if there is one. Can trigger an update. */
  setMaster(edge: MasterEdge): void {
    if (this.#mastership === undefined) return
    this.#mastership.setMaster(edge)
    this.#updater.updateIfFull(this.#period)
  }

  /** No further inputs are expected: DMB waits for this node no longer. Can trigger an update. */
  end(): void {
    this.#mastership?.end()
    if (this.#mastership) this.#updater.updateIfFull(this.#period)
  }

  /**
   * The neighbour's transport reports, in order with its frames, that the neighbour has received
   * this node's frames.
   * @param sequence number of the last one, counted from 1 in each session. @default all frames so
   * far
   */
  taken(edgeNumber: number, sequence?: number): void {
    this.#edges.get(edgeNumber)?.reachedNeighbour(sequence)
  }

  /** Algorithm 5: a frame arrives. Malformed bytes are a `refused` effect and change nothing. */
  receive(edgeNumber: number, bytes: Uint8Array): void {
    const edge = this.#edges.get(edgeNumber)
    if (edge === undefined) return
    this.#sums.limitList(edge)
    if (this.#table.size > this.#maxContributors + FRAME_LIMITS.definitions) this.#collectContributors()
    try {
      if (isAnnouncement(bytes)) {
        if (this.#announcements?.receiveAnnouncement(edge, bytes)) this.#announce()
      } else if (isTrustMessage(bytes)) this.#trust?.receiveMessage(edgeNumber, edge, bytes)
      else if (this.#mastership && isEndNotice(bytes)) {
        this.#mastership.receiveNotice(edge, bytes)
        this.#updater.updateIfFull(this.#period)
      } else if (this.#receiver.receiveFrame(edge, bytes, this.#period)) this.#updater.updateIfFull(this.#period)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.#effects.push({ kind: 'refused', edge: edgeNumber, reason: error.message })
    }
    if (this.#trust === undefined) return
    this.#exclude(isTrustMessage(bytes) ? edge : undefined)
    this.#adoptVouched()
  }

  /**
   * Adopts a predictor received outside the tree (`storage.save` of another node) if it is better.
   * @throws FrameError
   */
  offer(bytes: Uint8Array, from: string): void {
    this.#offer(this.storage.read(bytes), from)
  }

  /**
   * The download of an `offered` predictor has ended.
   * @param stored the predictor (`storage.saveBlocks` of another node), which is adopted if it is better.
   * Otherwise, or if it is undefined, it counts as not delivered, and neighbours are asked for theirs.
   * @throws FrameError if it is malformed; it then counts as not delivered
   */
  downloadEnded(stored: StoredBlocks | undefined, from: string): void {
    const { id } = this.predictor
    try {
      if (stored) this.#offer(this.storage.readBlocks(stored), from)
    } finally {
      this.#push.downloadEnded(this.#edges.values(), !sameId(id, this.predictor.id), this.#period)
    }
  }

  #offer(saved: Saved, from: string): void {
    const isRestored = from === this.#options.self
    const authenticity = this.#trust?.authenticity
    const {
      predictor,
      lineage,
      attestation,
      claims = new Map()
    } = isRestored ? (authenticity?.restored(saved) ?? saved) : saved
    const received = { predictor, steps: [], attestation }
    if (!this.isBetter(predictor.id)) return
    if (!isRestored) {
      authenticity?.check({ id: predictor.id, headers: lineage, attestation }, claims)
      this.#exclude()
    }
    if (isRestored || (this.#trust?.admits(received, lineage, from) ?? true)) {
      this.#adopt(lineage, received, from)
      // Neighbours that hold the same predictor do not know that this node needs sums for it.
      for (const edge of this.#edges.values()) edge.due.acknowledgement = true
      this.#updater.updateIfFull(this.#period)
    }
  }

  /** Restores the bytes of `storage.save` of an earlier run. Call it before the first `connect`. */
  restore(bytes: Uint8Array): void {
    this.offer(bytes, this.#options.self)
    this.#effects.length = 0
  }

  /** Restores a stored predictor. Call it before the first `connect`. @throws FrameError */
  restoreBlocks(stored: StoredBlocks): void {
    this.#offer(this.storage.readBlocks(stored), this.#options.self)
    this.#effects.length = 0
  }

  /**
   * Continues the journal of earlier runs. Call it before `restore` and the first input.
   * @throws FrameError
   */
  recover(records: readonly JournalRecord[]): void {
    const { self, budget } = this.#options
    this.#ledger.recover(recover(records, self, this.#table, budget && this.shapes.parameters))
  }

  /**
   * The journal's records since the last call, to be durable before later frames leave.
   * @param isStored whether a later run can read them @default true
   */
  takeJournal(isStored = true): readonly JournalRecord[] {
    return this.#ledger.takeRecords(isStored)
  }

  /**
   * Numbers [first, end) of inputs of an earlier run to learn again now: no batch of the lineage
   * used them, and no neighbour holds them in a sum for the current predictor. Call `closeSegment`
   * before and after adding them.
   */
  get relearnable(): readonly [first: number, end: number] | undefined {
    return this.#ledger.relearnable
  }

  /** With a budget: whether these inputs need no gradients, because the node still has theirs. They must be `added` all the same. */
  get onlyCounts(): boolean {
    return this.#ledger.onlyCounts
  }

  /**
   * With a budget: whether these inputs do not count, because a batch has used their count, while a crash has taken their gradients. They
   * must be learned and `added` all the same.
   */
  get onlyProgress(): boolean {
    return this.#ledger.onlyProgress
  }

  /** Inputs [first, end) of earlier runs cannot be learned again, because their rows are gone. */
  forget(first: number, end: number): void {
    this.#ledger.forget(first, end)
  }

  /** Number of earlier inputs that wait to be learned again, or whose gradients are in doubt. */
  get waiting(): number {
    return this.#ledger.waiting
  }

  /** Ends the segment of own gradients, so that the next ones form a segment of their own. */
  closeSegment(): void {
    this.#ledger.close(this.#period)
  }

  takeEffects(): Effect[] {
    const effects = this.#effects
    return effects.length > 0 ? effects.splice(0) : effects
  }

  /** Whether `frame` has something to send on this edge. */
  hasFrame(edgeNumber: number): boolean {
    const edge = this.#edges.get(edgeNumber)
    return edge !== undefined && this.#sender.hasFrame(edge)
  }

  /**
   * The next frame for a neighbour, composed from the newest state; undefined if there is nothing
   * to send. Large frames are returned as fragments (`isFragment`), after which the next call may
   * follow at once. Call it when the transport is ready.
   */
  frame(edgeNumber: number): Uint8Array | undefined {
    const edge = this.#edges.get(edgeNumber)
    return edge && this.#sender.next(edge, this.#period)
  }

  /**
   * Ends the sessions with makers against whom there is a new proof.
   * @param source session that has sent it
   */
  #exclude(source?: Edge): void {
    for (const number of this.#trust?.takeExcluded(source) ?? []) {
      const peer = this.#edges.get(number)?.peer ?? ''
      this.disconnect(number)
      this.#refuse(number, peer)
    }
  }

  #refuse(edge: number, peer: string): void {
    this.#effects.push({ kind: 'refused', edge, reason: `${peer} has signed different headers with one name` })
  }

  #adoptVouched(): void {
    for (const { received, headers, from } of this.#trust?.takeVouched() ?? []) {
      this.#adopt(headers, received, from)
      for (const edge of this.#edges.values()) {
        if (edge.peer !== from) continue
        this.#announcements?.delivered(edge)
        edge.pushed.isDistrusted = false
        edge.due.acknowledgement = true
      }
      this.#updater.updateIfFull(this.#period)
    }
  }

  /** Removes contributors to which neither edges nor headers nor own segments refer. */
  #collectContributors(): void {
    if (this.#table.size <= this.#maxContributors) return
    const live = new Set([this.#self])
    this.#ledger.mark(live)
    this.#current.mark(live)
    this.#trust?.mark(live)
    this.#sums.mark(live)
    this.#table.retain(live)
    this.#sums.contributorsRemoved()
    this.#maxContributors = 2 * live.size + SPARE_CONTRIBUTORS
  }

  #adopt(chain: readonly Header[], received: ReceivedPredictor, from: string): void {
    this.#switchPredictor(chain, received)
    this.#effects.push({ kind: 'adopted', predictor: received.predictor, from })
  }

  /** Number of gradients that the next update lacks. */
  get #missing(): number {
    return this.#updater.needed - this.#updater.gradients
  }

  /** Whether there are neighbours, none of which is known to hold the current predictor. */
  get #isUnshared(): boolean {
    for (const edge of this.#edges.values()) if (this.#push.isInSync(edge)) return false
    return this.#edges.size > 0
  }

  #switchPredictor(chain: readonly Header[], received: ReceivedPredictor): void {
    const carries = this.#options.carries?.(this.predictor, received.predictor) ?? true
    this.#current.switchPredictor(chain, received)
    const { predictor } = received
    this.#trust?.switchPredictor(chain.slice(0, received.steps.length))
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

  #announce(): void {
    for (const due of this.#announcements?.due() ?? []) this.#effects.push({ kind: 'announced', ...due })
  }
}

/** @throws RangeError */
function checkOptions({ batch, precedence, carry }: Omit<AdmbOptions, 'initial'>): void {
  const [min, max] = typeof batch === 'number' ? [batch, batch] : [batch.min, batch.max]
  if (!Number.isSafeInteger(min) || min < 1 || max > MAX_BATCH)
    throw new RangeError(`batch must be an integer from 1 to ${MAX_BATCH}, not ${min}`)
  if (precedence === 'sender' && carry)
    throw new RangeError("precedence 'sender' requires carry 0, because nodes can return to an earlier predictor")
}
