/**
 * ADMB as a state machine (Dekel et al., "Robust Distributed Online Prediction", Algorithms 3 to 6), with the repairs that
 * real networks need: precedence by origin, names, incarnations, coverage, sessions, sums only to those who hold the same
 * predictor, forwarding at once, carry-over. It has no clock, no randomness and no I/O: the driver brings events (own
 * gradients, ticks, frames, neighbours up and down), takes the effects, and asks for frames when a transport can take one.
 * The same code runs in the simulator and over libp2p.
 */
import type { Blocks, Layout } from '../learner/types.js'
import { decodeFrame, encodeFrame, type Frame, type FrameSum, type Shapes } from './codec.js'
import { type Coverage, changes, disjoint, EMPTY, segmentsOf, single, union, withChanges } from './coverage.js'
import { Edge, type HeldSum } from './edge.js'
import { DivergedError, FrameError } from './errors.js'
import { type Contributor, ContributorTable } from './keys.js'
import { Ledger, type OwnSum } from './ledger.js'
import { HeaderMemory } from './lineage.js'
import { compareNames, equivocates, type Precedence, type PredictorName, sameName } from './name.js'
import { type Batch, type Header, nextPredictor, type Predictor, type Recipe } from './predictor.js'
import { decodeSaved, encodeSaved, type Saved } from './saved.js'
import { addInto, byteLength, copyOf, isFinite32 } from './vectors.js'

export interface AdmbOptions extends Recipe {
  /** This node's index among all nodes; lower wins between predictors with equally many updates. */
  readonly self: string
  /** Number of this run, stored durably before the first frame leaves: 1 at first, then one more each start. */
  readonly incarnation: number
  readonly layout: Layout
  /** The predictor to start from: `startingPredictor(…)`, or what an earlier run saved. */
  readonly initial: Predictor
  /** b: gradients a batch, ≥ 1. */
  readonly batch: number
  /** S: periods for which gradients that no batch used are kept; 0 is the published algorithm. Default 0. */
  readonly carry?: number
  /** H: how many headers of ancestors are kept and sent along, when `carry` is not 0. Default 64. */
  readonly lineage?: number
  /** Default 'origin'. 'sender' is the paper's letter, for experiments; it needs carry 0. */
  readonly precedence?: Precedence
  /** Whole predictors up to that many bytes are sent unasked to a neighbour that lacks them. Default 65536. */
  readonly pushBytes?: number
}

/** What happened, for the driver to act on. */
export type Effect =
  | { readonly kind: 'updated'; readonly predictor: Predictor; readonly header: Header; readonly batch: Batch }
  | { readonly kind: 'adopted'; readonly predictor: Predictor; readonly from: string }
  | { readonly kind: 'refused'; readonly edge: number; readonly reason: string }

export class AdmbNode {
  readonly #options: AdmbOptions
  readonly #shapes: Shapes
  readonly #carry: number
  readonly #headers: HeaderMemory
  readonly #pushBytes: number
  readonly #wholeBytes: number
  readonly #table = new ContributorTable()
  readonly #self: number
  readonly #ledger: Ledger
  readonly #edges = new Map<number, Edge>()
  #effects: Effect[] = []
  #period = 0
  #predictor: Predictor
  /** The parent, kept so that a step made elsewhere from it can be replayed. */
  #parent: Predictor | undefined
  /** The batch that made the predictor from its parent, where it is known. */
  #step: Batch | undefined
  #lineage: readonly Header[] = []
  /** Counts every change of what sums are made of. */
  #version = 0
  #heldCount = 0

  constructor(options: AdmbOptions) {
    if (!Number.isSafeInteger(options.batch) || options.batch < 1) {
      throw new RangeError(`batch is ${options.batch}; it must be a whole number of at least 1`)
    }
    if (options.precedence === 'sender' && options.carry) {
      throw new RangeError('sender precedence lets nodes return to a predictor, so it needs carry 0')
    }
    this.#options = options
    this.#carry = options.carry ?? 0
    this.#headers = new HeaderMemory(this.#carry === 0 ? 1 : (options.lineage ?? 64))
    this.#pushBytes = options.pushBytes ?? 65536
    this.#shapes = { parameters: options.layout, state: options.rule.stateLayout(options.layout) }
    this.#wholeBytes = 2 * byteLength(this.#shapes.parameters) + byteLength(this.#shapes.state)
    this.#predictor = options.initial
    this.#self = this.#table.number(options.self, options.incarnation)
    this.#ledger = new Ledger(options.layout, this.#carry, this.#self, options.initial.name)
  }

  /** Layouts of parameters and rule state, as frames carry them. */
  get shapes(): Shapes {
    return this.#shapes
  }

  get predictor(): Predictor {
    return this.#predictor
  }

  /** Gradients held for the predictor, own and others': an update follows at `batch`. */
  get gradients(): number {
    return this.#ledger.count + this.#heldCount
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
    return this.#lineage
  }

  /** The sum held from a neighbour for the current predictor, with its contributors. For status and checks. */
  held(edge: number): (Batch & { readonly contributors: readonly Contributor[] }) | undefined {
    const held = this.#edges.get(edge)?.held
    if (held === undefined) return undefined
    const contributors = held.coverage.contributors.map(number => this.#table.contributor(number))
    return { sum: held.sum, count: held.count, contributors }
  }

  /** Where the learner adds the gradients (a sum) of own inputs, taken at `predictor.parameters`; `added` must follow. */
  get accumulator(): Blocks {
    return this.#ledger.accumulator
  }

  /**
   * Algorithm 3: `count` own gradients were added to the accumulator. May update.
   * @throws DivergedError if the update's result is not finite; the node must not be used any further
   */
  added(count: number): void {
    this.#ledger.added(count)
    this.#version++
    this.#updateIfFull()
  }

  /**
   * Look-ahead: the running average that would result if the update were made now with the gradients held, fewer than b of
   * them. Shared state is not touched. `predictor.average` when nothing is held.
   */
  ahead(): Blocks {
    if (this.gradients === 0) return this.#predictor.average
    const { rule, averaging } = this.#options
    const own = this.#ledger.total()
    const { sum, count } = this.#total(own, this.#combined(undefined).chosen)
    const updates = this.#predictor.name.updates
    const { parameters } = rule.step(this.#predictor, sum, count, updates)
    return averaging.average(this.#predictor.average, parameters, updates)
  }

  /** Algorithm 4: a period T has passed; sums become due, and what was lost on the way is repeated. */
  tick(): void {
    this.#period++
    for (const edge of this.#edges.values()) {
      const theirs = edge.peerHolds
      if (theirs !== undefined && this.#better(theirs, this.#predictor.name, edge.peer)) {
        if (edge.askBackoff.due(this.#period)) {
          edge.askBackoff.again(this.#period)
          edge.ask = true
        }
      } else if (this.#lacks(edge) && edge.pushBackoff.due(this.#period)) {
        edge.repush = true
        edge.pushBackoff.again(this.#period)
      }
      edge.ackDue = edge.owesAck
      this.#markSum(edge)
    }
  }

  /** A neighbour's session begins. `edge` and `session` are the driver's numbers, `session` the same at both ends. */
  connect(edge: number, session: number, peer: string): void {
    if (this.#edges.has(edge)) this.disconnect(edge)
    this.#edges.set(edge, new Edge(session, peer))
  }

  /** The session ended: what came over it is dropped; own gradients stay. */
  disconnect(edge: number): void {
    if (!this.#edges.delete(edge)) return
    this.#version++
    this.#heldCount = this.#combined(undefined).count
  }

  /** Algorithm 5: a frame arrived. Never throws for bad bytes; it reports them as `refused` and changes nothing. */
  receive(edgeNumber: number, bytes: Uint8Array): void {
    const edge = this.#edges.get(edgeNumber)
    if (edge === undefined) return
    try {
      const isCurrent = (session: number, sequence: number) => session === edge.session && sequence > edge.received
      const frame = decodeFrame(bytes, this.#shapes, this.#table, edge, isCurrent)
      if (frame) this.#accept(edge, frame)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.#effects.push({ kind: 'refused', edge: edgeNumber, reason: error.message })
    }
  }

  /** A predictor that came outside the tree (`save` of another node). Adopts it if it is better. Throws FrameError. */
  offer(bytes: Uint8Array, from: string): void {
    const saved = decodeSaved(bytes, this.#shapes, this.#table, this.#options.digest)
    if (this.#compare(saved.predictor.name) > 0) {
      this.#adopt(saved.predictor, saved.lineage, undefined, from)
      this.#updateIfFull()
    }
  }

  /** Whether a name heard of elsewhere is better than what is held. Throws FrameError on equivocation. */
  wants(name: PredictorName): boolean {
    return this.#compare(name) > 0
  }

  /** The predictor with its lineage as stand-alone bytes, for storage and for `offer`. */
  save(saved: Saved = this.snapshot()): Uint8Array {
    return encodeSaved(saved, this.#shapes, this.#table)
  }

  /** What `save` would write now, for writing later. */
  snapshot(): Saved {
    return { predictor: this.#predictor, lineage: this.#lineage }
  }

  /** Takes back what `save` gave in an earlier run, before any neighbour is there. */
  restore(bytes: Uint8Array): void {
    this.offer(bytes, this.#options.self)
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
    return (
      edge !== undefined &&
      (edge.urgent || edge.ask || edge.answer || edge.sumDue || edge.ackDue || this.#mustPush(edge))
    )
  }

  /** The next frame for that neighbour, newest state, or undefined if there is nothing to say. Call when it can be sent. */
  frame(edgeNumber: number): Uint8Array | undefined {
    const edge = this.#edges.get(edgeNumber)
    if (edge === undefined || !this.hasFrame(edgeNumber)) return undefined
    const sequence = edge.nextSequence(this.#period)
    const name = this.#predictor.name
    const content = this.#content(edge, sequence)
    const sum = edge.sumDue && this.#sharesPredictor(edge) ? this.#sum(edge, sequence) : undefined
    const frame: Frame = {
      session: edge.session,
      sequence,
      received: edge.received,
      heldSum: edge.held?.sequence ?? 0,
      name,
      ask: edge.ask,
      headers: content ? this.#headersFor(edge) : [],
      content,
      sum
    }
    edge.urgent = edge.ask = edge.answer = edge.sumDue = edge.owesAck = edge.ackDue = false
    return encodeFrame(frame, this.#shapes, this.#table, edge)
  }

  #accept(edge: Edge, frame: Frame): void {
    const comparison = this.#compare(frame.name)
    const better = this.#better(frame.name, this.#predictor.name, edge.peer)
    const adopted = better && frame.content ? this.#materialise(frame) : undefined
    const coverage = frame.sum && this.#coverageOf(edge, frame.sum)
    edge.received = frame.sequence
    edge.confirm(frame.received, this.#period)
    edge.peerHolds = frame.name
    if (frame.content || frame.sum || frame.ask) edge.owesAck = true
    if (adopted) this.#adopt(adopted.predictor, frame.headers, adopted.batch, edge.peer)
    else if (better && (!edge.asked || !sameName(edge.asked, frame.name) || frame.content)) {
      edge.asked = frame.name
      edge.ask = true
      edge.askBackoff.start(this.#period, edge.roundTrip)
    }
    if (comparison === 0 || adopted) {
      if (frame.heldSum !== edge.sumAcknowledged) edge.noteSumAcknowledged(frame.heldSum)
      if (frame.sum && coverage) this.#hold(edge, frame.sequence, frame.sum, coverage)
    }
    if (frame.ask && this.#lacks(edge) && !this.#pushInFlight(edge)) edge.answer = true
    this.#updateIfFull()
  }

  /** Coverage of a received sum in own numbers; undefined if its base is unknown here, so that it cannot be used. */
  #coverageOf(edge: Edge, sum: FrameSum): Coverage | undefined {
    const base = edge.receivedCoverage(sum.base)
    if (base === undefined) return undefined
    const coverage = withChanges(base, sum.changed)
    if ((sum.count === 0) !== (coverage.contributors.length === 0)) {
      throw new FrameError(`a sum of ${sum.count} gradients from ${coverage.contributors.length} contributors`)
    }
    return coverage
  }

  /** Keeps a neighbour's newest sum, unless it contains own gradients: those came back on a cycle. */
  #hold(edge: Edge, sequence: number, sum: FrameSum, coverage: Coverage): void {
    edge.noteReceived(sequence, coverage, sum.base)
    if (segmentsOf(coverage, this.#self) > 0) {
      if (edge.held === undefined) return
      edge.held = undefined
    } else edge.held = { sequence, count: sum.count, coverage, sum: sum.sum }
    edge.changes++
    this.#version++
    this.#heldCount = this.#combined(undefined).count
  }

  /** The received predictor, replayed or taken over, its digest checked; undefined if its parent is not held here. */
  #materialise(frame: Frame): { predictor: Predictor; batch: Batch | undefined } | undefined {
    const { content, name, headers } = frame
    const header = headers[0]
    if (header && header.count < this.#options.batch) {
      throw new FrameError(`a batch of ${header.count} gradients where ${this.#options.batch} are needed`)
    }
    if (content?.kind === 'step') {
      const parent = [this.#predictor, this.#parent].find(held => held && sameName(held.name, header.parent))
      if (parent === undefined) return undefined
      if (parent.name.digest !== header.parent.digest)
        throw new FrameError('a step from another parent of the same name')
      const batch = { sum: content.sum, count: header.count }
      const predictor = nextPredictor(parent, batch, name, this.#options)
      if (predictor.name.digest !== name.digest) throw new FrameError('replaying the step gives another predictor')
      if (!isFinitePredictor(predictor)) throw new FrameError('replaying the step gives numbers that are not finite')
      return { predictor, batch }
    }
    if (content === undefined) return undefined
    const { parameters, average, state } = content
    if (this.#options.digest([parameters, average, state]) !== name.digest) {
      throw new FrameError('content does not match its digest')
    }
    return { predictor: { name, parameters, average, state }, batch: undefined }
  }

  #adopt(predictor: Predictor, chain: readonly Header[], batch: Batch | undefined, from: string): void {
    this.#turn(predictor, this.#headers.extend(chain), batch)
    this.#effects.push({ kind: 'adopted', predictor, from })
  }

  /** Algorithm 6, when b gradients are there. */
  #updateIfFull(): void {
    if (this.gradients < this.#options.batch) return
    const { self, incarnation } = this.#options
    const own = this.#ledger.close(this.#period)
    const { sum, count, coverage } = this.#total(own, this.#combined(undefined).chosen)
    const batch = { sum, count }
    const predictor = nextPredictor(this.#predictor, batch, { origin: self, incarnation }, this.#options)
    if (!isFinitePredictor(predictor)) throw new DivergedError(predictor.name.updates)
    const header: Header = { name: predictor.name, parent: this.#predictor.name, count, coverage }
    this.#turn(predictor, this.#headers.extend([header]), batch)
    this.#effects.push({ kind: 'updated', predictor, header, batch })
  }

  #turn(predictor: Predictor, lineage: readonly Header[], batch: Batch | undefined): void {
    const parent = lineage[0]?.parent
    this.#parent = [this.#predictor, this.#parent].find(held => held && parent && sameName(held.name, parent))
    this.#predictor = predictor
    this.#step = batch
    this.#lineage = lineage
    this.#ledger.turn(predictor.name, lineage, this.#period)
    for (const edge of this.#edges.values()) edge.turn()
    this.#heldCount = 0
    this.#version++
  }

  /** Held sums with pairwise disjoint coverages, larger counts first where they overlap, without that of one edge. */
  #combined(except: Edge | undefined): { readonly chosen: readonly HeldSum[]; readonly count: number } {
    const held: HeldSum[] = []
    for (const edge of this.#edges.values()) if (edge !== except && edge.held) held.push(edge.held)
    held.sort((a, b) => b.count - a.count)
    const chosen: HeldSum[] = []
    let count = 0
    for (const candidate of held) {
      if (!chosen.every(other => disjoint(other.coverage, candidate.coverage))) continue
      chosen.push(candidate)
      count += candidate.count
    }
    return { chosen, count }
  }

  #total(own: OwnSum, others: readonly HeldSum[]): { sum: Float32Array[]; count: number; coverage: Coverage } {
    const sum = copyOf(own.sum)
    let count = own.count
    let coverage = single(this.#self, own.segments)
    for (const held of others) {
      addInto(sum, held.sum)
      count += held.count
      coverage = union(coverage, held.coverage)
    }
    return { sum, count, coverage }
  }

  #sum(edge: Edge, sequence: number): FrameSum {
    const { sum, count, coverage } = this.#total(this.#ledger.close(this.#period), this.#combined(edge).chosen)
    const base = edge.base()
    edge.noteSent(sequence, coverage)
    edge.lastSum = { sequence, name: this.#predictor.name, empty: coverage === EMPTY }
    const version = this.#version - edge.changes
    if (version !== edge.sentVersion) edge.sumBackoff.start(this.#period, edge.roundTrip)
    edge.sentVersion = version
    return { base: base.sequence, changed: changes(base.coverage, coverage), count, sum }
  }

  /** A sum is due where something changed that the neighbour did not send itself, or where the last one seems lost. */
  #markSum(edge: Edge): void {
    if (!this.#sharesPredictor(edge)) return
    const last = edge.lastSum
    if (edge.sentVersion !== this.#version - edge.changes) {
      const empty = this.#ledger.count === 0 && this.#combined(edge).count === 0
      if (!empty || (last && !last.empty)) edge.sumDue = true
    } else if (last && last.sequence !== edge.sumAcknowledged && edge.sumBackoff.due(this.#period)) {
      edge.sumBackoff.again(this.#period)
      edge.sumDue = true
    }
  }

  /** Whether the neighbour holds this node's predictor, or will once the last frame has reached it. */
  #sharesPredictor(edge: Edge): boolean {
    const name = this.#predictor.name
    if (edge.peerHolds && sameName(edge.peerHolds, name)) return true
    return edge.push !== undefined && edge.push.kind !== 'offer' && sameName(edge.push.name, name)
  }

  #lacks(edge: Edge): boolean {
    return (
      edge.peerHolds !== undefined && this.#better(this.#predictor.name, edge.peerHolds, this.#options.self, edge.peer)
    )
  }

  /** Whether this predictor went out and the neighbour has not yet said anything that came after its arrival. */
  #pushInFlight(edge: Edge): boolean {
    const push = edge.push
    return (
      push !== undefined &&
      push.kind !== 'offer' &&
      sameName(push.name, this.#predictor.name) &&
      push.sequence > edge.acknowledged &&
      !edge.pushBackoff.due(this.#period)
    )
  }

  #mustPush(edge: Edge): boolean {
    return this.#lacks(edge) && (edge.repush || !(edge.push && sameName(edge.push.name, this.#predictor.name)))
  }

  /** What of the predictor goes along: the step for a holder of the parent, the whole if small or asked for, or nothing. */
  #content(edge: Edge, sequence: number): Frame['content'] {
    const must = this.#mustPush(edge)
    if (!must && !edge.answer) return undefined
    const { name, parameters, average, state } = this.#predictor
    const parent = this.#lineage[0]?.parent
    const failed = edge.answer && edge.push?.kind === 'step' && sameName(edge.push.name, name)
    const replayable = this.#step && parent && edge.peerHolds && sameName(parent, edge.peerHolds) && !failed
    const kind = replayable ? 'step' : edge.answer || this.#wholeBytes <= this.#pushBytes ? 'whole' : 'offer'
    if (!edge.push || !sameName(edge.push.name, name)) edge.pushBackoff.start(this.#period, edge.roundTrip)
    edge.push = { name, kind, sequence }
    edge.repush = false
    if (kind === 'step' && this.#step) return { kind, sum: this.#step.sum }
    return kind === 'whole' ? { kind, parameters, average, state } : undefined
  }

  /** Headers that the neighbour may lack: back to what it holds where that is an ancestor, else all that are known. */
  #headersFor(edge: Edge): readonly Header[] {
    const theirs = edge.peerHolds
    const known = theirs ? this.#lineage.findIndex(header => sameName(header.parent, theirs)) : -1
    return known < 0 ? this.#lineage : this.#lineage.slice(0, known + 1)
  }

  /** Order against the predictor held. Throws FrameError when one name stands for two contents. */
  #compare(name: PredictorName): number {
    if (equivocates(name, this.#predictor.name)) {
      throw new FrameError(`two different predictors are named ${name.updates} updates by ${name.origin || 'nobody'}`)
    }
    return compareNames(name, this.#predictor.name)
  }

  /** Whether the holder of `b` should take over `a` from `sender`. */
  #better(a: PredictorName, b: PredictorName, sender: string, receiver = this.#options.self): boolean {
    if (this.#options.precedence !== 'sender') return compareNames(a, b) > 0
    if (a.updates !== b.updates) return a.updates > b.updates
    return !sameName(a, b) && sender < receiver
  }
}

function isFinitePredictor({ parameters, average, state }: Predictor): boolean {
  return isFinite32(parameters) && isFinite32(average) && isFinite32(state)
}
