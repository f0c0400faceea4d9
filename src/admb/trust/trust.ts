/**
 * Requirements of a node on others, beyond well-formed frames. Algorithms 3 to 6 assume correct
 * peers, so a node without these options has no `Trust`. It makes three judgements: what becomes of
 * a frame's predictor (`judge`), which better predictors replace the current one (`admits`), and
 * which sums of neighbours are used (`use`).
 */
import type { CurrentPredictor, ReceivedPredictor } from '../core/current-predictor.js'
import type { Edge, NeighbourSum } from '../core/edge.js'
import type { AdmbOptions, Effect } from '../core/options.js'
import { type Contributor, type ContributorTable, type Coverage, covered } from '../state/coverage.js'
import { batchOf, type Header, type Predictor } from '../state/predictor.js'
import type { PredictorId } from '../state/predictor-id.js'
import { gridOf } from '../state/rounding.js'
import { FrameError } from '../wire/bytes.js'
import type { ReceivedFrame, ReceivedSum } from '../wire/frame.js'
import type { OutgoingMessage } from '../wire/messages.js'
import { Authenticity } from './authenticity.js'
import { encodeProof, isProof } from './equivocation.js'
import { Gate } from './gate.js'
import { checkInfluence } from './influence.js'
import { Jumps, type Quarantined, type QuarantinedPredictor } from './jumps.js'
import { Quotas } from './quotas.js'
import type { Claims } from './signatures.js'
import { isVoucher, Vouchers } from './vouchers.js'

/** Use of a neighbour's sum: it replaces the last one, leaves that one in use, or removes it. */
export type SumUse = 'replaces' | 'is ignored' | 'removes'

/** What becomes of the predictor of a frame. */
export interface Verdict {
  /** Whether it is better than the current one, and was not refused a short time ago. */
  readonly isWanted: boolean
  /** The predictor, if it is wanted and the frame contains it. */
  readonly received: ReceivedPredictor | undefined
  /** Whether it replaces the current one. */
  readonly isAdopted: boolean
}

export interface TrustParts {
  readonly options: Omit<AdmbOptions, 'initial'>
  readonly current: CurrentPredictor
  readonly table: ContributorTable
  /** Open sessions by edge. */
  readonly edges: ReadonlyMap<number, Edge>
  /** Takes effects for the driver. */
  readonly report: (effect: Effect) => void
}

/** @returns undefined if no option requires it */
export function createTrust(parts: TrustParts): Trust | undefined {
  const { signer, gate, quota, jumps, influence, isContributor } = parts.options
  if (jumps && signer === undefined) throw new RangeError('a rule for jumps requires a signer')
  return signer || gate || quota || influence || isContributor ? new Trust(parts) : undefined
}

/** Whether the bytes are a message of `Trust`. The result is arbitrary for malformed bytes. */
export function isTrustMessage(bytes: Uint8Array): boolean {
  return isProof(bytes) || isVoucher(bytes)
}

export class Trust {
  readonly #parts: TrustParts
  readonly #authenticity: Authenticity | undefined
  readonly #gate: Gate
  readonly #vouchers: Vouchers
  readonly #jumps: Jumps
  readonly #quotas: Quotas | undefined
  /** Sessions with a sum of more gradients than its contributors may contribute. */
  readonly #excessive = new WeakSet<Edge>()
  /** The last contributor for which a sum was not used, by session. */
  readonly #unlisted = new WeakMap<Edge, string>()
  #period = 0

  constructor(parts: TrustParts) {
    const { options, current, table, edges } = parts
    const { self, signer, quota, jumps: rule } = options
    this.#parts = parts
    this.#authenticity = signer && new Authenticity(signer, self, table)
    this.#gate = new Gate(options.gate)
    const holds = (id: PredictorId) => current.holds(id)
    this.#vouchers = new Vouchers({ signer, self, edges, holds, isListed: rule?.isListed })
    this.#jumps = new Jumps({
      rule,
      self,
      current: () => current.predictor.id,
      holds,
      vouchers: id => this.#vouchers.of(id),
      isExcluded: peer => this.isExcluded(peer)
    })
    this.#quotas = quota && new Quotas(quota, number => this.#originOf(number))
  }

  /** Signs with the key of this node; undefined if headers are not signed. */
  get authenticity(): Authenticity | undefined {
    return this.#authenticity
  }

  /**
   * First judgement: what becomes of a frame and its predictor.
   * @param isBetter whether the predictor takes precedence over the current one
   * @returns undefined if there is a proof against the neighbour, so that the frame is ignored
   * @throws FrameError
   */
  judge(edge: Edge, frame: ReceivedFrame, isBetter: boolean): Verdict | undefined {
    const { current } = this.#parts
    const isWanted = isBetter && !this.hasRefused(frame.id)
    const isOffered = isWanted && frame.content !== undefined
    this.#check(frame, edge.decoder.claims, isOffered)
    if (this.isExcluded(edge.peer)) return undefined
    const received = isOffered ? current.validated(frame) : undefined
    const isAdopted = received !== undefined && this.admits(received, frame.headers, edge.peer)
    const held = current.compare(frame.id) === 0 ? current.predictor : isAdopted ? received.predictor : undefined
    const { sum } = frame
    if (held && sum?.coverage) this.#checkInfluence(held, { ...sum, coverage: sum.coverage }, true)
    return { isWanted, received, isAdopted }
  }

  /**
   * Who has made and contributed to what a frame brings.
   * @param isAdoptable whether the node adopts the frame's predictor if it `admits` it
   * @throws FrameError if a signature is missing or wrong, or a batch is too small
   */
  #check(frame: ReceivedFrame, claims: Claims, isAdoptable: boolean): void {
    const coverage = frame.sum?.coverage
    if (coverage && this.#unlistedIn(coverage) === undefined) this.#authenticity?.checkCoverage(coverage, claims)
    if (isAdoptable) {
      this.#authenticity?.check(frame, claims)
      this.#checkBatches(frame)
    } else this.#authenticity?.compare(frame.headers[0], claims)
  }

  /**
   * Second judgement: whether a better predictor may replace the current one. One that needs
   * vouchers waits, see `takeVouched`.
   * @param headers headers of the predictor and its ancestors, newest first
   * @param from the neighbour, or the peer from which it was fetched
   */
  admits(received: ReceivedPredictor, headers: readonly Header[], from: string): boolean {
    const { predictor, base, steps, attestation } = received
    const batches = headers.slice(0, steps.length)
    if (this.isExcluded(predictor.id.origin) || this.isExcluded(attestation?.signer ?? '')) return false
    const areListed = batches.every(({ coverage }) => this.#unlistedIn(coverage) === undefined)
    if (base !== undefined && areListed && (this.#quotas?.allows(batches) ?? true)) return true
    if (!this.#gate.accepts(predictor, this.#parts.current.predictor)) {
      this.#gate.refuse(predictor.id)
      this.#parts.report({ kind: 'rejected', predictor, from })
      return false
    }
    if (this.#jumps.accepts(received, headers)) return true
    this.#quarantine(this.#jumps.wait(received, headers, from))
    return false
  }

  /** Third judgement: the use of a neighbour's sum. Each reason against it is reported once. */
  use(edge: Edge, sum: NeighbourSum): SumUse {
    const { report } = this.#parts
    const unlisted = this.#unlistedIn(sum.coverage)
    if (unlisted !== undefined) {
      if (unlisted !== this.#unlisted.get(edge)) report({ kind: 'unlisted', contributor: unlisted, from: edge.peer })
      this.#unlisted.set(edge, unlisted)
      return 'removes'
    }
    if (this.#quotas && !this.#quotas.allows([sum])) {
      if (!this.#excessive.has(edge)) report({ kind: 'excessive', from: edge.peer })
      this.#excessive.add(edge)
      return 'is ignored'
    }
    this.#quotas?.recordSum(edge, sum)
    return 'replaces'
  }

  /**
   * Checks a batch of steps that are replayed.
   * @param parent predictor at which its sum was computed
   * @throws FrameError
   */
  checkBatch(parent: Predictor, batch: { sum: ReceivedSum['sum']; count: number; coverage: Coverage }): void {
    if (this.#quotas) checkComplete(batch.count, batchOf(this.#parts.options.batch, parent))
    this.#checkInfluence(parent, batch, false)
  }

  #checkInfluence(
    at: Predictor,
    sum: { sum: ReceivedSum['sum']; count: number; coverage: Coverage },
    isNamed: boolean
  ) {
    const { influence, rule } = this.#parts.options
    const originOf = isNamed ? (number: number) => this.#originOf(number) : undefined
    if (influence) checkInfluence(influence, at.parameters, gridOf(at, rule), sum, originOf)
  }

  /** With quotas, batches below b are refused, as small ones yield more updates than allowed. */
  #checkBatches({ headers, content }: ReceivedFrame): void {
    const { batch } = this.#parts.options
    if (this.#quotas === undefined || content === undefined) return
    const complete = content.kind === 'steps' ? content.steps.length : 1
    for (const { count } of headers.slice(0, complete))
      checkComplete(count, typeof batch === 'number' ? batch : batch.min)
  }

  /** Whether there is a proof against the maker. */
  isExcluded(maker: string): boolean {
    return this.#authenticity?.isExcluded(maker) ?? false
  }

  /** Whether the gate has rejected the predictor a short time ago, or it waits for vouchers. */
  hasRefused(id: PredictorId): boolean {
    return this.#gate.hasRejected(id) || this.#jumps.isWaiting(id)
  }

  /** Whether the node `hasRefused` the predictor, or there is a proof against its maker. */
  isRefused(id: PredictorId): boolean {
    return this.hasRefused(id) || this.isExcluded(id.origin)
  }

  /** Whether batches and sums are limited by rates. */
  get hasQuotas(): boolean {
    return this.#quotas !== undefined
  }

  /** The newest predictor that waits for vouchers; undefined if none waits. */
  get quarantined(): QuarantinedPredictor | undefined {
    const waiting = [...this.#jumps.waiting].at(-1)
    return waiting && this.#describe(waiting)
  }

  /** Removes and returns better predictors for which enough peers vouch by now. */
  *takeVouched(): Generator<Quarantined> {
    const isBetter = (id: PredictorId) => this.#parts.current.compare(id) > 0
    for (const waiting of this.#jumps.takeReady(isBetter)) {
      const { received, headers, from } = waiting
      // The caller may have adopted another one meanwhile.
      if (isBetter(received.predictor.id) && this.admits(received, headers, from)) yield waiting
    }
  }

  /** The node has learned `count` inputs, by which the gate may judge differently. */
  recordInputs(count: number): void {
    this.#gate.recordInputs(count)
  }

  /**
   * A period has passed. Questions are repeated, since they may be lost, and others may be able to
   * answer them later.
   * @param elapsed number of periods since the last tick
   */
  tick(period: number, elapsed: number): void {
    this.#period = period
    this.#quotas?.elapse(elapsed)
    this.#vouchers.tick(period)
    for (const { received, backoff } of this.#jumps.waiting) {
      if (!backoff.isDue(period)) continue
      backoff.advance(period)
      this.#send(this.#vouchers.ask(received.predictor.id))
    }
  }

  /**
   * The node holds another predictor.
   * @param batches headers of the batches from a predictor that it held, newest first
   */
  switchPredictor(batches: readonly Header[]): void {
    this.#quotas?.switchPredictor(batches)
  }

  /** A session starts: the neighbour receives all proofs. */
  connect(edge: number, session: number): void {
    for (const proof of this.#authenticity?.proofs ?? [])
      this.#parts.report({ kind: 'announced', edge, bytes: encodeProof(session, proof) })
  }

  disconnect(edge: number): void {
    this.#vouchers.disconnect(edge)
  }

  /** Receives a proof, a question or a voucher (`isTrustMessage`). @throws FrameError */
  receiveMessage(number: number, edge: Edge, bytes: Uint8Array): void {
    if (isProof(bytes)) this.#authenticity?.receiveProof(bytes, edge.session)
    else this.#send(this.#vouchers.receiveMessage(number, bytes))
  }

  /**
   * Passes new proofs on.
   * @param source session that has sent them
   * @returns the edges of makers against whom there is a new proof; the caller ends them
   */
  takeExcluded(source: Edge | undefined): readonly number[] {
    const excluded: number[] = []
    for (const proof of this.#authenticity?.takeNew() ?? []) {
      this.#parts.report({ kind: 'excluded', maker: proof.maker })
      for (const [number, edge] of this.#parts.edges) {
        if (edge.peer === proof.maker) excluded.push(number)
        else if (edge !== source)
          this.#parts.report({ kind: 'announced', edge: number, bytes: encodeProof(edge.session, proof) })
      }
    }
    return excluded
  }

  /** Adds the contributors to which predictors that wait refer. */
  mark(live: Set<number>): void {
    this.#jumps.mark(live)
  }

  /** A covered peer whose gradients may not be used; undefined if there is none. */
  #unlistedIn(coverage: Coverage): string | undefined {
    const { isContributor, self } = this.#parts.options
    if (isContributor === undefined) return undefined
    for (const contributor of covered(coverage)) {
      const origin = this.#originOf(contributor)
      if (origin !== self && !isContributor(origin)) return origin
    }
    return undefined
  }

  #originOf(contributor: number): string {
    return (this.#parts.table.contributor(contributor) as Contributor).origin
  }

  #quarantine(waiting: Quarantined | undefined): void {
    if (waiting === undefined) return
    this.#parts.report({ kind: 'quarantined', ...this.#describe(waiting) })
    waiting.backoff.start(this.#period, 0)
    this.#send(this.#vouchers.ask(waiting.received.predictor.id))
  }

  #describe(waiting: Quarantined): QuarantinedPredictor {
    const { from, received } = waiting
    return { id: received.predictor.id, from, answers: this.#jumps.answers(waiting), needed: this.#jumps.needed }
  }

  #send(messages: readonly OutgoingMessage[]): void {
    for (const message of messages) this.#parts.report({ kind: 'announced', ...message })
  }
}

/** @throws FrameError */
function checkComplete(count: number, min: number): void {
  if (count < min) throw new FrameError(`batch of ${count} gradients; at least ${min} are required`)
}
