/**
 * Drives a node: decides in which order its frames, its journal and its effects leave it, and how
 * it continues after a restart. Peers and the simulator run it. It has no clock, no I/O and no
 * promises: time is passed in, and a host sends and stores.
 *
 * 1. A frame is composed when its edge can take one, from the newest state. The records of the
 *    segments that it may contain are in the journal before it: the host sends it only when they
 *    are durable (`JournalQueue`).
 * 2. A record of the journal, and a checkpoint, have all inputs so far in closed segments, because
 *    the position in the stream that is stored with them is behind these inputs.
 * 3. Announcements leave at once. With differential privacy they wait for the journal as well, as
 *    they follow from noisy sums.
 * 4. A node that restarts knows the journal before its checkpoint, and both before its first edge.
 * 5. Inputs that are learned again have segments of their own.
 */
import type { JournalRecord } from '../core/journal.js'
import type { AdmbNode } from '../core/node.js'
import type { Effect } from '../core/options.js'
import { isFragment } from '../wire/fragments.js'
import type { OutgoingMessage } from '../wire/messages.js'
import { Remainder } from './remainder.js'

/** A node, or what stands for one. */
export type DrivenNode = Pick<AdmbNode, keyof AdmbNode>

/** An effect that the driver does not execute itself. */
export type HostEffect = Exclude<Effect, { readonly kind: 'announced' }>

/** Surroundings of a node: its edges, and the observer of its effects. */
export interface DriverHost {
  /** Whether an edge can take a frame or fragment now. If not, the host calls `writable` later. */
  canSend(edge: number): boolean
  /** Sends a frame or a fragment, as soon as all records so far are durable. */
  send(edge: number, bytes: Uint8Array): void
  /** Sends a short message ahead of frames. */
  announce(edge: number, bytes: Uint8Array): void
  on(effect: HostEffect): void
}

/** Keeps journal records. */
export interface DriverJournal {
  /** Whether they are stored. If not, they only tell this run which inputs to read again. */
  readonly isStored: boolean
  /** Takes records. If they are stored, all inputs so far are in their segments. */
  append(records: readonly JournalRecord[]): void
}

/** Options of a `Driver`. */
export interface DriverOptions {
  /** T in milliseconds. */
  readonly period: number
  /**
   * Minimum time without a change before gradients that are left at the end of inputs are used, in
   * milliseconds.
   * @default 5000
   */
  readonly quiet?: number
  /** Time at the start, in milliseconds of the clock whose times are passed in. */
  readonly now: number
  /** @default no inputs are numbered */
  readonly journal?: DriverJournal
  /**
   * Whether announcements wait for the journal as well, because they follow from own sums.
   * @default only frames and checkpoints wait
   */
  readonly isPrivate?: boolean
}

/** Drives a node: decides in which order frames, journal and effects leave it. */
export class Driver {
  readonly #node: DrivenNode
  readonly #host: DriverHost
  readonly #options: DriverOptions
  readonly #remainder: Remainder
  readonly #edges = new Set<number>()
  /** Announcements that wait for the journal. */
  readonly #announcements: OutgoingMessage[] = []
  #lastTick: number

  constructor(node: DrivenNode, host: DriverHost, options: DriverOptions) {
    this.#node = node
    this.#host = host
    this.#options = options
    this.#remainder = new Remainder(node, options.period, options.quiet)
    this.#lastTick = options.now
  }

  /**
   * Continues earlier runs. Call it before anything else.
   * @param records undefined without a journal
   * @param restore restores the checkpoint
   * @throws FrameError
   */
  restore(records: readonly JournalRecord[] | undefined, restore: () => void): void {
    if (records) this.#node.recover(records)
    restore()
  }

  /** An edge session starts. `flush` follows this event, as all others. */
  connect(edge: number, session: number, peer: string): void {
    this.#edges.add(edge)
    this.#node.connect(edge, session, peer)
  }

  /** @param hasLeft whether the neighbour has left the network */
  disconnect(edge: number, hasLeft = false): void {
    this.#edges.delete(edge)
    this.#node.disconnect(edge, hasLeft)
  }

  /**
   * A period has passed, or several if the node was busy.
   * @param isStreamOver whether no further inputs are expected
   */
  tick(now: number, isStreamOver: boolean): void {
    this.#node.tick((now - this.#lastTick) / this.#options.period)
    this.#lastTick = now
    if (isStreamOver) {
      this.#node.end()
      this.#remainder.tick(now)
    }
    if (this.#options.journal?.isStored === false) this.record()
  }

  /**
   * Executes the effects of the events since the last call, while inputs are being learned: no
   * frame may leave before they are all counted.
   */
  takeEffects(): void {
    for (const effect of this.#node.takeEffects()) {
      if (effect.kind !== 'announced') this.#host.on(effect)
      else if (this.#options.isPrivate) this.#announcements.push(effect)
      else this.#host.announce(effect.edge, effect.bytes)
    }
  }

  /** Executes the effects of an event, and sends on all edges that can take a frame. */
  flush(): void {
    this.takeEffects()
    this.protect()
    for (const edge of this.#edges) this.writable(edge)
  }

  /** Sends frames while the edge can take them. The host calls it when the edge can take more. */
  writable(edge: number): void {
    for (let isMore = true; isMore && this.#host.canSend(edge); ) {
      const bytes = this.#node.frame(edge)
      this.record()
      if (bytes === undefined) return
      this.#host.send(edge, bytes)
      isMore = isFragment(bytes)
    }
  }

  /**
   * With differential privacy, announcements wait for the records of the noisy sums. Call it before
   * the host tells of an effect.
   */
  protect(): void {
    if (!this.#options.isPrivate) return
    this.record()
    for (const { edge, bytes } of this.#announcements.splice(0)) this.#host.announce(edge, bytes)
  }

  /**
   * Puts new records into the journal, with all inputs so far.
   * @param always whether to do so without new records, for a checkpoint, which contains the
   * position in the stream
   */
  record(always = false): void {
    const { journal } = this.#options
    if (journal === undefined) return
    const records = this.#node.takeJournal(journal.isStored)
    if (!journal.isStored) journal.append(records)
    if (!journal.isStored || (records.length === 0 && !always)) return
    this.#node.closeSegment()
    journal.append([...records, ...this.#node.takeJournal()])
  }

  /**
   * Learns inputs again as a segment of their own: those of earlier runs, and those that a jump to
   * another lineage has left unused. Hosts do so at most once a period while there are new inputs,
   * which must not wait.
   */
  inOwnSegment<Result>(learn: () => Result): Result {
    this.#node.closeSegment()
    const result = learn()
    this.#node.closeSegment()
    return result
  }
}
