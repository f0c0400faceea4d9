/**
 * ADMB as a state machine (Dekel et al., "Robust Distributed Online Prediction", Algorithms 3 to 6), with extensions for real
 * networks: precedence by origin, predictor ids, incarnations, coverages, edge sessions, sums only between nodes that hold the
 * same predictor, immediate forwarding, carry-over. It has no clock, no randomness and no I/O: the driver passes events (own
 * gradients, ticks, frames, edges up and down), executes the effects, and asks for frames when the transport can take one.
 * The simulator and the libp2p peer run the same code.
 */
import { DivergenceError } from '../../base/errors.js'
import type { Blocks } from '../../learner/types.js'
import { gridOf } from '../state/lazy-grid.js'
import type { Header } from '../state/predictor.js'
import { encodeProof, isProof } from '../trust/equivocation.js'
import { isVoucher } from '../trust/vouchers.js'
import { FrameError } from '../wire/bytes.js'
import { ExchangedSums } from '../wire/exchanged-sums.js'
import { FRAME_LIMITS } from '../wire/limits.js'
import type { Saved } from '../wire/saved.js'
import { isAnnouncement } from './announcements.js'
import type { ReceivedPredictor } from './current-predictor.js'
import { Edge } from './edge.js'
import { type JournalRecord, recover } from './journal.js'
import type { StoredBlocks } from './node-storage.js'
import { NodeView } from './node-view.js'
import type { Effect } from './options.js'

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
export class AdmbNode extends NodeView {
  /** Period of the last change of predictor. */
  #switchedAt = 0
  /** Number of contributors above which those that are not used are removed. */
  #maxContributors = SPARE_CONTRIBUTORS

  /** Blocks to which the learner adds the sum of its gradients at `predictor.parameters`; `added` must follow. */
  get accumulator(): Blocks {
    return this.parts.ledger.accumulator
  }

  /**
   * Algorithm 3: `count` own gradients were added to the accumulator. Updates the predictor if b gradients are available.
   * @param first number of the first of these inputs, if there is a journal; the others follow it
   * @throws DivergenceError if the update is not finite and no neighbour's sum alone is the cause; the node must not be used
   *   any further
   */
  added(count: number, first?: number): void {
    if (this.#isFinal) {
      this.parts.ledger.discard(count)
      return
    }
    const { batch } = this.parts.options
    if (typeof batch !== 'number' && this.#isUnshared) batch.countUnshared(this.parts.ledger.accumulator, count)
    this.parts.ledger.added(count, first)
    this.parts.admission.added(count)
    this.parts.outgoingSums.markChanged()
    this.#updateIfFull()
  }

  /**
   * Look-ahead: the running average that an update with the available gradients (fewer than b) would yield. Does not change
   * any state. Returns that of the predictor if there are no gradients. It contains own gradients without noise.
   */
  lookAhead(): Blocks {
    return this.parts.updater.lookAhead()
  }

  /**
   * Algorithm 4: a period T has passed. Sums become due, and lost messages are repeated.
   * @param elapsed number of periods since the last tick; more than 1 if the node was busy. Only `quota` depends on it. @default 1
   */
  tick(elapsed = 1): void {
    this.parts.period++
    this.parts.quotas?.elapse(elapsed)
    if ((this.parts.period - this.#switchedAt) % COMPACTION_PERIODS === 0) this.parts.sums.compact()
    this.#collectContributors()
    this.parts.ledger.releaseSums(this.parts.period)
    if (this.parts.announcements?.tick(this.parts.period)) this.#updateIfFull()
    this.parts.admission.tick(this.parts.period)
    this.#adoptVouched()
    this.#announce()
    const { holdsSums } = this
    const missing = this.#missing
    for (const edge of this.parts.edges.values()) {
      if (edge.peerPredictor === undefined || !this.parts.admission.isRefused(edge.peerPredictor))
        this.parts.outbox.scheduleRetries(edge, this.parts.period)
      edge.ackDue = edge.ackPending
      if (holdsSums || !this.parts.outbox.willBeInSync(edge)) continue
      if (!this.parts.outgoingSums.isDue(edge, this.parts.period, missing)) continue
      // A further sum would displace one to which steps of the neighbour refer. A request is acknowledged in any case.
      if (edge.exchanged?.isFull) edge.requestDue = true
      else edge.sumDue = true
    }
  }

  /** An edge session starts. The driver chooses both numbers; `session` is the same at both ends. */
  connect(edge: number, session: number, peer: string): void {
    if (this.parts.edges.has(edge)) this.disconnect(edge)
    if (this.parts.authenticity.isExcluded(peer)) {
      this.#refuse(edge, peer)
      return
    }
    for (const proof of this.parts.authenticity.proofs)
      this.parts.effects.push({ kind: 'announced', edge, bytes: encodeProof(session, proof) })
    const created = new Edge(
      session,
      peer,
      this.parts.shapes.isLattice
        ? new ExchangedSums(this.parts.shapes, this.predictor.id, this.parts.options)
        : undefined
    )
    created.announceBackoff.start(this.parts.period, 0)
    this.parts.edges.set(edge, created)
  }

  /**
   * The session ended: the neighbour's sum is dropped, own gradients stay. Can trigger an update, because sums that
   * overlapped with the dropped one may now be added together.
   */
  disconnect(edge: number): void {
    const removed = this.parts.edges.get(edge)
    if (removed === undefined) return
    this.parts.edges.delete(edge)
    this.parts.admission.disconnect(edge)
    this.parts.sums.edgeRemoved(removed)
    this.parts.outgoingSums.markChanged()
    this.#updateIfFull()
  }

  /**
   * The neighbour's transport reports, in order with its frames, that the neighbour has taken this node's frames.
   * @param sequence of the last one, counted from 1 in each session. @default all frames so far
   */
  taken(edgeNumber: number, sequence?: number): void {
    const edge = this.parts.edges.get(edgeNumber)
    if (edge) edge.taken = Math.max(edge.taken, sequence ?? edge.sent)
  }

  /** Algorithm 5: a frame arrived. Reports malformed bytes as a `refused` effect and changes nothing; never throws for them. */
  receive(edgeNumber: number, bytes: Uint8Array): void {
    const edge = this.parts.edges.get(edgeNumber)
    if (edge === undefined) return
    this.parts.sums.limitList(edge)
    if (this.parts.table.size > this.#maxContributors + FRAME_LIMITS.definitions) this.#collectContributors()
    try {
      if (isProof(bytes)) this.parts.authenticity.receiveProof(bytes, edge.session)
      else if (isVoucher(bytes)) this.parts.admission.receiveVoucher(edgeNumber, bytes)
      else if (isAnnouncement(bytes)) {
        if (this.parts.announcements?.receive(edge, bytes)) this.#announce()
      } else if (this.parts.receiver.receive(edge, bytes, this.parts.period)) this.#updateIfFull()
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.parts.effects.push({ kind: 'refused', edge: edgeNumber, reason: error.message })
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
    const isRestored = from === this.parts.options.self
    const {
      predictor,
      lineage,
      attestation,
      claims = new Map()
    } = isRestored ? this.parts.authenticity.restored(saved) : saved
    const received = { predictor, steps: [], attestation }
    if (!this.isBetter(predictor.id)) return
    if (!isRestored) {
      this.parts.authenticity.check({ id: predictor.id, headers: lineage, attestation }, claims)
      this.#exclude()
    }
    if (isRestored || this.parts.admission.accepts(received, lineage, from)) {
      this.adopt(lineage, received, from)
      this.#updateIfFull()
    }
  }

  /** Restores what `storage.save` returned in an earlier run. Call it before the first `connect`. */
  restore(bytes: Uint8Array): void {
    this.offer(bytes, this.parts.options.self)
    this.parts.effects.length = 0
  }

  /** Restores a stored predictor. Call it before the first `connect`. @throws FrameError */
  restoreBlocks(stored: StoredBlocks): void {
    this.#offer(this.storage.readBlocks(stored), this.parts.options.self)
    this.parts.effects.length = 0
  }

  /** Continues the journal of earlier runs. Call it before `restore` and the first input. @throws FrameError */
  recover(records: readonly JournalRecord[]): void {
    this.parts.ledger.recover(recover(records, this.parts.options.self, this.parts.table))
  }

  /** Takes the journal's records since the last call. They must be durable before any frame composed after them leaves. */
  takeJournal(): readonly JournalRecord[] {
    return this.parts.ledger.takeRecords()
  }

  /**
   * Numbers [first, end) of inputs of an earlier run to learn again now: no batch of the lineage used them, and no neighbour holds
   * them in a sum for the current predictor. Call `closeSegment` before and after adding them.
   */
  get relearnable(): readonly [first: number, end: number] | undefined {
    return this.parts.ledger.relearnable
  }

  /** Inputs [first, end) of earlier runs cannot be learned again, because their rows are gone. */
  forget(first: number, end: number): void {
    this.parts.ledger.forget(first, end)
  }

  /** Number of inputs of earlier runs that wait to be learned again, or whose new gradients are in doubt. */
  get waiting(): number {
    return this.parts.ledger.waiting
  }

  /** Ends the segment of own gradients, so that the next ones form a segment of their own. */
  closeSegment(): void {
    this.parts.ledger.close(this.parts.period)
  }

  takeEffects(): Effect[] {
    const { effects } = this.parts
    return effects.length > 0 ? effects.splice(0) : effects
  }

  /** Whether `frame` has something to send on this edge. */
  hasFrame(edgeNumber: number): boolean {
    const edge = this.parts.edges.get(edgeNumber)
    return edge !== undefined && this.parts.sender.hasFrame(edge)
  }

  /**
   * The next frame for a neighbour, composed from the newest state; undefined if there is nothing to send. Large frames are
   * returned as fragments (`isFragment`), after which the next call may follow at once. Call it when the transport is ready.
   */
  frame(edgeNumber: number): Uint8Array | undefined {
    const edge = this.parts.edges.get(edgeNumber)
    return edge && this.parts.sender.next(edge, this.parts.period)
  }

  /** Ends the sessions with makers against whom there is a new proof, and passes it on. @param source edge that has sent it */
  #exclude(source?: Edge): void {
    for (const proof of this.parts.authenticity.takeNew()) {
      this.parts.effects.push({ kind: 'excluded', maker: proof.maker })
      for (const [number, edge] of [...this.parts.edges]) {
        if (edge.peer === proof.maker) {
          this.disconnect(number)
          this.#refuse(number, edge.peer)
        } else if (edge !== source)
          this.parts.effects.push({ kind: 'announced', edge: number, bytes: encodeProof(edge.session, proof) })
      }
    }
  }

  #refuse(edge: number, peer: string): void {
    this.parts.effects.push({ kind: 'refused', edge, reason: `${peer} has signed different headers with one name` })
  }

  #adoptVouched(): void {
    for (const { received, headers, from } of this.parts.admission.takeVouched()) {
      this.adopt(headers, received, from)
      for (const edge of this.parts.edges.values()) {
        if (edge.peer !== from) continue
        this.parts.announcements?.delivered(edge)
        edge.isDistrusted = false
        edge.ackDue = true
      }
      this.#updateIfFull()
    }
  }

  /** Removes contributors to which neither edges nor headers nor own segments refer. */
  #collectContributors(): void {
    if (this.parts.table.size <= this.#maxContributors) return
    const live = new Set([this.parts.selfIndex])
    this.parts.ledger.mark(live)
    this.parts.current.mark(live)
    this.parts.admission.mark(live)
    this.parts.sums.mark(live)
    this.parts.table.retain(live)
    this.parts.sums.contributorsRemoved()
    this.#maxContributors = 2 * live.size + SPARE_CONTRIBUTORS
  }

  protected override adopt(chain: readonly Header[], received: ReceivedPredictor, from: string): void {
    this.#switchPredictor(chain, received)
    this.parts.effects.push({ kind: 'adopted', predictor: received.predictor, from })
  }

  /**
   * Updates with the available gradients, although they are fewer than b. Call it when inputs have ended and nothing has changed for
   * some time. Does nothing with quotas, or while a better predictor is expected.
   */
  useRemainder(): void {
    if (this.parts.quotas === undefined && this.gradients > 0 && !this.isWaiting) this.#updateIfFull(1)
  }

  /** Algorithm 6, if b gradients are available. @returns whether all of them were used for an update */
  #updateIfFull(needed = this.needed): boolean {
    if (this.gradients < needed || this.#isFinal) return false
    this.parts.announcements?.giveUp()
    const update = this.parts.updater.make(this.parts.period)
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
    this.parts.effects.push({ kind: 'updated', predictor, header, batch })
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
    for (const edge of this.parts.edges.values()) if (this.parts.outbox.isInSync(edge)) return false
    return this.parts.edges.size > 0
  }

  /** Drops sums that alone would make the update non-finite (a fault or an attack). @returns whether there was one */
  #dropOverflowingSums(): boolean {
    let wasDropped = false
    for (const [number, edge] of this.parts.edges) {
      if (edge.neighbourSum === undefined || !this.parts.updater.isOverflowing(edge.neighbourSum)) continue
      this.parts.sums.drop(edge)
      this.parts.outgoingSums.markChanged()
      this.parts.effects.push({
        kind: 'refused',
        edge: number,
        reason: 'gradient sum would make the update non-finite'
      })
      wasDropped = true
    }
    return wasDropped
  }

  #switchPredictor(chain: readonly Header[], received: ReceivedPredictor): void {
    const carries = this.parts.options.carries?.(this.predictor, received.predictor) ?? true
    this.parts.current.switchPredictor(chain, received)
    const { predictor } = received
    this.parts.quotas?.switchPredictor(chain.slice(0, received.steps.length))
    const grid = gridOf(predictor, this.parts.options.rule)
    this.parts.ledger.switchPredictor(predictor.id, this.parts.current.lineage, this.parts.period, { carries, grid })
    this.parts.influence?.switchPredictor(predictor.parameters)
    this.parts.sums.switchPredictor()
    for (const edge of this.parts.edges.values()) edge.switchPredictor(predictor.id)
    this.#switchedAt = this.parts.period
    this.parts.pace?.switchPredictor(this.parts.period)
    this.parts.outgoingSums.markChanged()
    this.#announce()
  }

  #announce(): void {
    for (const due of this.parts.announcements?.due() ?? []) this.parts.effects.push({ kind: 'announced', ...due })
  }
}
