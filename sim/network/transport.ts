/**
 * Delivers messages between nodes. A message departs when its link is free and arrives after a delay; on arrival it may meet a
 * partition, a clog or a paused process. Messages of a session channel are then held and keep their order; a loss only delays
 * them by a retransmission. Single messages are lost at a partition and held at a clog.
 */

import { portableExp } from '../../src/numeric/exp.js'
import { SlotTable } from '../engine/queue.js'
import type { Random } from '../engine/random.js'
import type { Partition, Population } from '../faults/schedule.js'
import type { Scenario } from '../scenario.js'
import type { Message, SessionChannel } from '../wiring/wiring.js'
import { Bandwidth } from './bandwidth.js'

/** The run, as the transport needs it. */
export interface TransportHost {
  readonly now: number
  /** Calls `arrive(slot)` at `time`. */
  schedule(time: number, slot: number): void
  /** Delivers a message to its receiver. */
  deliver(message: Message): void
}

/** Retransmission timeout of a session channel, in mean delays of its link. */
const RETRANSMIT_AFTER = 3

/** Carries the messages of a run over its links, through partitions, clogs and losses. */
export class Transport {
  readonly reachability = new Reachability()
  readonly #bandwidth: Bandwidth
  readonly #links: Links
  readonly #inFlight = new SlotTable<Message>()
  readonly #population: Population
  readonly #host: TransportHost
  /** Single messages held at a clog, in order. */
  #heldMessages: Message[] = []
  /** Channels with messages held at a clog or a partition. */
  readonly #heldChannels = new Set<SessionChannel>()
  /** Messages that arrived while a node's process was paused. */
  readonly #inboxes = new Map<number, Message[]>()
  #messages = 0
  #bytes = 0

  constructor(scenario: Scenario, random: Random, population: Population, carrier: TransportHost) {
    this.#bandwidth = new Bandwidth(scenario)
    this.#links = new Links(scenario, random)
    this.#population = population
    this.#host = carrier
  }

  /** Messages sent so far. */
  get messages(): number {
    return this.#messages
  }

  /** Bytes sent so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Time at which the link between two nodes has transmitted everything queued on it. Not later than now if it is idle. */
  freeAt(from: number, to: number): number {
    return this.#bandwidth.freeAt(from, to)
  }

  /** Ends loss, duplication and reordering. */
  stopFaults(): void {
    this.#links.stopFaults()
  }

  /** @param bytes size on the wire */
  send(message: Message, bytes: number): void {
    const { from, to, channel } = message
    this.#messages++
    this.#bytes += bytes
    const departure = this.#bandwidth.departure(this.#host.now, from, to, bytes)
    if (channel !== undefined) {
      let time = departure + this.#links.delay(from, to)
      while (this.#links.loses()) time += RETRANSMIT_AFTER * this.#links.mean(from, to)
      channel.lastArrival = Math.max(channel.lastArrival, time)
      this.#host.schedule(channel.lastArrival, this.#inFlight.put(message))
    } else if (!this.reachability.isCut(from, to) && !this.#links.loses()) {
      const copies = this.#links.duplicates() ? 2 : 1
      for (let copy = 0; copy < copies; copy++) {
        this.#host.schedule(departure + this.#links.delay(from, to), this.#inFlight.put(message))
      }
    }
  }

  /** Sends a message of the algorithm without a session. Services (negative numbers) never restart. */
  sendSingle(from: number, to: number, content: unknown, bytes: number): void {
    const lifetime = to < 0 ? 0 : this.#population.lifetime(to)
    this.send({ from, to, content, isOverlay: false, lifetime, channel: undefined }, bytes)
  }

  /** The message in flight in a slot. */
  peek(slot: number): Message {
    return this.#inFlight.get(slot)
  }

  /** Handles the arrival of the message in a slot. */
  arrive(slot: number): void {
    const message = this.#inFlight.take(slot)
    const { from, to, channel } = message
    const isCut = this.reachability.isCut(from, to)
    const isBlocked = isCut || this.reachability.isClogged(from, to)
    if (channel !== undefined && (isBlocked || channel.held.length > 0)) {
      channel.held.push(message)
      this.#heldChannels.add(channel)
    } else if (!isBlocked) this.#deliver(message)
    else if (!isCut) this.#heldMessages.push(message)
  }

  /** Delivers held messages whose path is open again. */
  release(): void {
    const held = this.#heldMessages
    this.#heldMessages = []
    for (const message of held) {
      if (this.reachability.isClogged(message.from, message.to)) this.#heldMessages.push(message)
      else if (!this.reachability.isCut(message.from, message.to)) this.#deliver(message)
    }
    for (const channel of this.#heldChannels) {
      const { held } = channel
      while (held.length > 0 && this.isOpen(held[0].from, held[0].to)) this.#deliver(held.shift() as Message)
      if (held.length === 0) this.#heldChannels.delete(channel)
    }
  }

  /** Delivers the messages that arrived while a node's process was paused. */
  flushInbox(node: number): void {
    const waiting = this.#inboxes.get(node) ?? []
    this.#inboxes.delete(node)
    for (const message of waiting) this.#host.deliver(message)
  }

  /** Drops the messages that wait for a process that has ended. */
  clearInbox(node: number): void {
    this.#inboxes.delete(node)
  }

  /** Whether neither a partition nor a clog blocks messages between two nodes. */
  isOpen(from: number, to: number): boolean {
    return !this.reachability.isCut(from, to) && !this.reachability.isClogged(from, to)
  }

  #deliver(message: Message): void {
    const { to } = message
    if (to < 0 || !this.#population.isPaused(to)) this.#host.deliver(message)
    else {
      const inbox = this.#inboxes.get(to)
      if (inbox === undefined) this.#inboxes.set(to, [message])
      else inbox.push(message)
    }
  }
}

/** The partition and the clogs in effect. */
export class Reachability {
  #partition: Partition | undefined
  readonly #clogged = new Set<string>()

  /** Whether a partition blocks messages from one node to another. Services (negative numbers) are on side 0. */
  isCut(from: number, to: number): boolean {
    if (this.#partition === undefined) return false
    const { sides, oneWay } = this.#partition
    const a = sides[from] ?? 0
    const b = sides[to] ?? 0
    return oneWay ? a < b : a !== b
  }

  partition(partition: Partition): void {
    this.#partition = partition
  }

  heal(): void {
    this.#partition = undefined
  }

  isClogged(from: number, to: number): boolean {
    return this.#clogged.size > 0 && this.#clogged.has(key(from, to))
  }

  clog(from: number, to: number): void {
    this.#clogged.add(key(from, to))
  }

  unclog(from: number, to: number): void {
    this.#clogged.delete(key(from, to))
  }
}

function key(from: number, to: number): string {
  return `${from}>${to}`
}

/** Standard deviation of the logarithm of log-normal delays: a tail like that of the public internet. */
const LOG_NORMAL_SIGMA = 0.8
/** Mean extra delay of a reordered message, in mean delays of its link. */
const REORDER_DELAY = 3

/**
 * The link model: delay, loss, duplication and reordering of messages. Each effect has its own random generator, so that
 * enabling one does not change the others.
 */
export class Links {
  #scenario: Scenario
  readonly #delays: Random
  readonly #losses: Random
  readonly #duplicates: Random
  readonly #reorders: Random
  readonly #means: Random
  /** Mean delays by pair of nodes, with `linkSpread`. */
  readonly #meanOf = new Map<number, number>()

  constructor(scenario: Scenario, random: Random) {
    this.#scenario = scenario
    this.#delays = random.fork('delay')
    this.#losses = random.fork('loss')
    this.#duplicates = random.fork('duplicate')
    this.#reorders = random.fork('reorder')
    this.#means = random.fork('means')
  }

  /** Ends loss, duplication and reordering. */
  stopFaults(): void {
    this.#scenario = { ...this.#scenario, loss: 0, duplicate: 0, reorder: 0 }
  }

  loses(): boolean {
    const { loss } = this.#scenario
    return loss > 0 && this.#losses.next() < loss
  }

  duplicates(): boolean {
    const { duplicate } = this.#scenario
    return duplicate > 0 && this.#duplicates.next() < duplicate
  }

  /** Mean one-way delay between two nodes in virtual milliseconds, equal in both directions. */
  mean(a: number, b: number): number {
    const { latency, linkSpread, nodes } = this.#scenario
    if (linkSpread === 0) return latency
    const pair = (Math.min(a, b) + 1) * (nodes + 1) + Math.max(a, b)
    let mean = this.#meanOf.get(pair)
    if (mean === undefined) {
      const deviate = this.#means.fork(`${pair}`).normal()
      mean = latency * portableExp(linkSpread * deviate - (linkSpread * linkSpread) / 2)
      this.#meanOf.set(pair, mean)
    }
    return mean
  }

  /** One-way delay of one message in virtual milliseconds. */
  delay(from: number, to: number): number {
    const { reorder } = this.#scenario
    const mean = this.mean(from, to)
    const extra = reorder > 0 && this.#reorders.next() < reorder ? this.#reorders.exponential(REORDER_DELAY * mean) : 0
    return extra + this.#draw(mean)
  }

  #draw(mean: number): number {
    const { delay } = this.#scenario
    switch (delay) {
      case 'constant':
        return mean
      case 'uniform':
        return mean * 2 * this.#delays.next()
      case 'exponential':
        return this.#delays.exponential(mean)
      case 'log-normal':
        return mean * portableExp(LOG_NORMAL_SIGMA * this.#delays.normal() - (LOG_NORMAL_SIGMA * LOG_NORMAL_SIGMA) / 2)
      default:
        return delay satisfies never
    }
  }
}
