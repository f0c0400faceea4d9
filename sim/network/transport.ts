/**
 * Carries messages between nodes: each sets out when its link is free, takes its time, and on arrival may find a cut, a
 * clog or a stopped process. What belongs to a session (a lane) waits there and keeps its order; losses only delay it, by
 * the time in which a sender would notice and repeat. Single messages are lost at a cut and wait at a clog.
 */
import type { Random } from '../engine/random.js'
import { Slots } from '../engine/slots.js'
import type { Population } from '../faults/population.js'
import type { Scenario } from '../scenario.js'
import { Links } from './links.js'
import type { Lane, Message } from './message.js'
import { Reach } from './reach.js'

/** What the transport asks of the run that it is part of. */
export interface Carrier {
  readonly now: number
  /** Calls `arrive(slot)` at that time. */
  schedule(time: number, slot: number): void
  /** A message is there for its receiver. */
  hand(message: Message): void
}

/** Until a lost message of a session is sent again, in mean delays of its link: a round trip and some patience. */
const REPEAT_AFTER = 3

export class Transport {
  readonly reach = new Reach()
  readonly #bandwidth: number
  readonly #links: Links
  readonly #underway = new Slots<Message>()
  readonly #population: Population
  readonly #carrier: Carrier
  /** When each directed link has sent what was given to it, by its nodes; with a limited bandwidth only. */
  readonly #freeAt = new Map<string, number>()
  /** Single messages at a clog, and lanes at a clog or a cut, in the order in which they came. */
  #stuck: Message[] = []
  readonly #stuckLanes = new Set<Lane>()
  /** What arrived while a node's process was stopped. */
  readonly #inboxes = new Map<number, Message[]>()
  #messages = 0
  #bytes = 0

  constructor(scenario: Scenario, random: Random, population: Population, carrier: Carrier) {
    this.#bandwidth = scenario.bandwidth
    this.#links = new Links(scenario, random)
    this.#population = population
    this.#carrier = carrier
  }

  /** Messages sent so far. */
  get messages(): number {
    return this.#messages
  }

  /** Bytes sent so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** When the link between two nodes has sent all that was given to it; now or earlier if it is idle. */
  freeAt(from: number, to: number): number {
    return this.#bandwidth === 0 ? 0 : (this.#freeAt.get(`${from}>${to}`) ?? 0)
  }

  /** Nothing is lost, doubled or overtaken any more. */
  calm(): void {
    this.#links.calm()
  }

  /** @param bytes its size on a wire */
  send(message: Message, bytes: number): void {
    const { from, to, lane } = message
    this.#messages++
    this.#bytes += bytes
    const leaves = this.#leave(from, to, bytes)
    if (lane !== undefined) {
      let time = leaves + this.#links.delay(from, to)
      while (this.#links.loses()) time += REPEAT_AFTER * this.#links.mean(from, to)
      lane.lastArrival = Math.max(lane.lastArrival, time)
      this.#carrier.schedule(lane.lastArrival, this.#underway.put(message))
    } else if (!this.reach.isCut(from, to) && !this.#links.loses()) {
      const copies = this.#links.duplicates() ? 2 : 1
      for (let copy = 0; copy < copies; copy++) {
        this.#carrier.schedule(leaves + this.#links.delay(from, to), this.#underway.put(message))
      }
    }
  }

  /** The message in a slot, still on its way. */
  at(slot: number): Message {
    return this.#underway.at(slot)
  }

  /** The message in the slot has come to the end of its way. */
  arrive(slot: number): void {
    const message = this.#underway.take(slot)
    const { from, to, lane } = message
    const isCut = this.reach.isCut(from, to)
    const isHeld = isCut || this.reach.isClogged(from, to)
    if (lane !== undefined && (isHeld || lane.held.length > 0)) {
      lane.held.push(message)
      this.#stuckLanes.add(lane)
    } else if (!isHeld) this.#put(message)
    else if (!isCut) this.#stuck.push(message)
  }

  /** Lets go what a cut or a clog held up, as far as the way is open now. */
  release(): void {
    const stuck = this.#stuck
    this.#stuck = []
    for (const message of stuck) {
      if (this.reach.isClogged(message.from, message.to)) this.#stuck.push(message)
      else if (!this.reach.isCut(message.from, message.to)) this.#put(message)
    }
    for (const lane of this.#stuckLanes) {
      const { held } = lane
      while (held.length > 0 && this.isOpen(held[0].from, held[0].to)) this.#put(held.shift() as Message)
      if (held.length === 0) this.#stuckLanes.delete(lane)
    }
  }

  /** Hands a node what arrived while its process was stopped. */
  open(node: number): void {
    const waiting = this.#inboxes.get(node) ?? []
    this.#inboxes.delete(node)
    for (const message of waiting) this.#carrier.hand(message)
  }

  /** The process that was stopped is gone, and what waited for it. */
  drop(node: number): void {
    this.#inboxes.delete(node)
  }

  #leave(from: number, to: number, bytes: number): number {
    if (this.#bandwidth === 0) return this.#carrier.now
    const leaves = Math.max(this.#carrier.now, this.freeAt(from, to)) + bytes / this.#bandwidth
    this.#freeAt.set(`${from}>${to}`, leaves)
    return leaves
  }

  /** Whether what is sent now from one to the other is under way at all. */
  isOpen(from: number, to: number): boolean {
    return !this.reach.isCut(from, to) && !this.reach.isClogged(from, to)
  }

  #put(message: Message): void {
    const { to } = message
    if (to < 0 || !this.#population.isPaused(to)) this.#carrier.hand(message)
    else {
      const inbox = this.#inboxes.get(to)
      if (inbox === undefined) this.#inboxes.set(to, [message])
      else inbox.push(message)
    }
  }
}
