/**
 * DMB and MaWo-DMB on the sessions of ADMB: only the node at the root of the tree, the master, makes
 * updates, and sums go only towards it. Nodes on the way add them. The host says where the master
 * is. Two nodes may hold themselves for the master for a while; the precedence of predictors
 * decides between their updates, and no gradient counts twice.
 *
 * - `mawo` (Dekel et al., "Robust Distributed Online Prediction", Algorithms 1 and 2): the master
 *   updates when own and received gradients fill a batch.
 * - `dmb` (Dekel et al., "Optimal Distributed Online Prediction Using Mini-Batches", Algorithm 3):
 *   each of the k members contributes b/k gradients to each batch. The members are the peers in the
 *   last batch; the first batch has b gradients, and at least one of each peer. A node takes no inputs beyond its
 *   share, and sends its sum when it has the share and the sums of all edges. The master waits for
 *   every member, and for every peer linked with it. A peer that has left or has no further inputs
 *   is no longer waited for: a notice with its run crosses the tree. A peer that has crashed is.
 */
import { type Contributor, type ContributorTable, covered } from '../state/coverage.js'
import { sameId } from '../state/predictor-id.js'
import { FLAGS } from '../wire/frame.js'
import { beginMessage, type OutgoingMessage, openMessage, readContributor, writeContributor } from '../wire/messages.js'
import type { CurrentPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import type { Ledger } from './ledger.js'
import type { NeighbourSums } from './neighbour-sums.js'
import type { MasterAlgorithm } from './options.js'

/** The edge towards the master; undefined while it is unknown. */
export type MasterEdge = number | 'self' | undefined

/** Periods after which notices are repeated. */
const REPEAT_PERIODS = 32
/** Runs that have ended, as far as they are remembered. */
const MAX_ENDED = 4096
/** Runs in a notice. */
const MAX_NOTICE = 256

export interface MastershipParts {
  readonly algorithm: MasterAlgorithm
  /** This run. */
  readonly contributor: Contributor
  readonly table: ContributorTable
  readonly edges: ReadonlyMap<number, Edge>
  readonly current: CurrentPredictor
  readonly ledger: Ledger
  readonly sums: NeighbourSums
  /** b of the current predictor. */
  readonly batch: () => number
  readonly send: (message: OutgoingMessage) => void
}

export class Mastership {
  readonly #parts: MastershipParts
  #master: MasterEdge
  /** Whether this node expects no further inputs. */
  #hasEnded = false
  /** Runs that contribute no more, oldest first. */
  readonly #ended = new Map<string, Contributor>()
  /** Sessions whose peer expects no further inputs. */
  readonly #endedEdges = new WeakSet<Edge>()
  /** Sessions that have received the notices that matter. */
  readonly #told = new WeakSet<Edge>()

  constructor(parts: MastershipParts) {
    this.#parts = parts
  }

  /** The host knows where the master is. */
  setMaster(master: MasterEdge): void {
    this.#master = master
    for (const { due } of this.#parts.edges.values()) due.sum = false
  }

  get isMaster(): boolean {
    return this.#master === 'self'
  }

  get #isDmb(): boolean {
    return this.#parts.algorithm === 'dmb'
  }

  /** Whether sums are sent over the edge now. */
  sendsTo(edge: Edge): boolean {
    const { edges } = this.#parts
    if (typeof this.#master !== 'number' || edges.get(this.#master) !== edge) return false
    return !this.#isDmb || (this.#hasShare && this.#missingEdges(edge).length === 0)
  }

  /**
   * Whether this node makes an update now.
   * @param gradients number of available gradients
   * @param needed number of them with which an update is made, except by DMB
   * @param isRemainder whether no further inputs are expected
   */
  mayUpdate(gradients: number, needed: number, isRemainder: boolean): boolean {
    if (!this.isMaster) return false
    if (!this.#isDmb || isRemainder) return gradients >= needed
    const isEnough = gradients >= (this.#isStart ? needed : 1)
    return isEnough && this.#hasShare && this.waitsFor.length === 0
  }

  /** Number of own gradients that the node takes before it must wait. */
  room(missing: number): number {
    const { batch, ledger } = this.#parts
    if (this.#isDmb) return Math.max(0, (this.#isStart ? batch() : this.#share) - ledger.count)
    return Math.max(1, this.isMaster ? missing : batch())
  }

  /** Whether own gradients must be in a closed segment now, because others limit the gradients of a segment. */
  get isSegmentFull(): boolean {
    return this.#parts.ledger.openCount >= this.#parts.batch()
  }

  /** DMB: the peers for whose gradients this node waits; the master waits for all members. */
  get waitsFor(): readonly string[] {
    if (!this.#isDmb) return []
    const { edges, contributor } = this.#parts
    const towards = typeof this.#master === 'number' ? edges.get(this.#master) : undefined
    const missing = new Set(this.#missingEdges(towards))
    if (!this.#hasShare) missing.add(contributor.origin)
    if (this.isMaster) for (const peer of this.#missingMembers()) missing.add(peer)
    return [...missing]
  }

  /** Whether there was no update, so that no node knows k. */
  get #isStart(): boolean {
    return this.#parts.current.predictor.id.updates === 0
  }

  /** b/k. */
  get #share(): number {
    const { batch } = this.#parts
    if (this.#isStart) return 1
    return Math.ceil(batch() / Math.max(1, this.#lastBatch?.coverage.size ?? 1))
  }

  get #hasShare(): boolean {
    return this.#hasEnded || this.#parts.ledger.count >= this.#share
  }

  /** Header of the current predictor, if it is known. */
  get #lastBatch() {
    const { lineage, predictor } = this.#parts.current
    return lineage.length > 0 && sameId(lineage[0].id, predictor.id) ? lineage[0] : undefined
  }

  /** Peers of open sessions that have sent no sum for the current predictor. */
  #missingEdges(except: Edge | undefined): string[] {
    const missing: string[] = []
    for (const edge of this.#parts.edges.values())
      if (edge !== except && edge.held.sum === undefined && !this.#endedEdges.has(edge)) missing.push(edge.peer)
    return missing
  }

  /** Peers in the last batch without gradients for the next one. */
  #missingMembers(): string[] {
    const { table, sums, contributor } = this.#parts
    const present = new Set([contributor.origin])
    for (const { coverage } of sums.selected())
      for (const member of covered(coverage)) present.add(table.contributor(member).origin)
    return this.#members
      .filter(member => !present.has(member.origin) && !this.#ended.has(keyOf(member)))
      .map(({ origin }) => origin)
  }

  /** The runs in the last batch. */
  get #members(): Contributor[] {
    const header = this.#lastBatch
    return header ? covered(header.coverage).map(member => this.#parts.table.contributor(member)) : []
  }

  /** This node expects no further inputs. */
  end(): void {
    if (!this.#isDmb || this.#hasEnded) return
    this.#hasEnded = true
    this.#add([this.#parts.contributor])
  }

  /** The peer of an edge has left the network. Call it before the edge is removed. */
  left({ peer, decoder }: Edge): void {
    if (!this.#isDmb) return
    const { table } = this.#parts
    const known = [...this.#members, ...decoder.contributors.map(index => table.contributor(index))]
    this.#add(known.filter(({ origin }) => origin === peer))
  }

  /** A period has passed: repeats what may be lost, as long as it matters. */
  tick(period: number): void {
    // An earlier run of this node may be in the last batch.
    if (this.#hasEnded) this.#add(this.#members.filter(({ origin }) => origin === this.#parts.contributor.origin))
    if (this.#ended.size === 0) return
    const relevant = new Set([...this.#members, this.#parts.contributor].map(keyOf))
    const runs = [...this.#ended].flatMap(([key, run]) => (relevant.has(key) ? [run] : []))
    for (const [number, edge] of this.#parts.edges) {
      if (this.#told.has(edge) && period % REPEAT_PERIODS > 0) continue
      this.#told.add(edge)
      this.#notify(number, edge, runs)
    }
  }

  /** Reads a notice (`isEndNotice`). @throws FrameError */
  receiveNotice(edge: Edge, bytes: Uint8Array): void {
    const input = openMessage(bytes)
    const session = input.uint()
    const runs = Array.from({ length: input.uint(MAX_NOTICE) }, () => readContributor(input))
    input.finish()
    if (session !== edge.session) return
    const { origin: self } = this.#parts.contributor
    if (runs.some(({ origin }) => origin === edge.peer)) this.#endedEdges.add(edge)
    this.#add(
      runs.filter(({ origin }) => origin !== self),
      edge
    )
  }

  #add(runs: readonly Contributor[], except?: Edge): void {
    const added = runs.filter(run => !this.#ended.has(keyOf(run)))
    for (const run of added) this.#ended.set(keyOf(run), run)
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= MAX_ENDED) break
      this.#ended.delete(oldest)
    }
    for (const [number, edge] of this.#parts.edges) if (edge !== except) this.#notify(number, edge, added)
  }

  #notify(number: number, { session }: Edge, runs: readonly Contributor[]): void {
    for (let from = 0; from < runs.length; from += MAX_NOTICE)
      this.#parts.send({ edge: number, bytes: encodeNotice(session, runs.slice(from, from + MAX_NOTICE)) })
  }
}

/** Whether the bytes are a notice of runs that contribute no more. The result is arbitrary for malformed bytes. */
export function isEndNotice(bytes: Uint8Array): boolean {
  return bytes[1] === FLAGS.ended
}

function encodeNotice(session: number, runs: readonly Contributor[]): Uint8Array {
  const out = beginMessage(FLAGS.ended, session)
  out.uint(runs.length)
  for (const run of runs) writeContributor(out, run)
  return out.finish()
}

function keyOf({ origin, incarnation, nonce }: Contributor): string {
  return `${origin} ${incarnation} ${nonce}`
}
