/** A model of the lines between the nodes of an emulated network: which packets arrive, and when. It has no clock and no I/O. */

/** What happens to the packets that a node sends. */
export interface Line {
  /** One-way delay, in ms. */
  readonly delay: number
  /** Maximum of a uniform addition to the delay, in ms. It does not change the order of packets. @default 0 */
  readonly jitter?: number
  /** Share of packets that are lost. @default 0 */
  readonly loss?: number
  /** Share of packets that arrive twice. @default 0 */
  readonly duplicates?: number
  /** Share of packets that later ones overtake, as they take twice the delay and 5 ms. @default 0 */
  readonly reordered?: number
  /** Bytes per second that the node sends, to all others together. @default no limit */
  readonly rate?: number
}

export interface Conditions {
  /** By sending node. */
  readonly lines: readonly Line[]
  /** Pairs [sender, receiver] whose packets are lost. */
  readonly cuts: readonly (readonly [from: number, to: number])[]
}

/** Time that packets wait at most for a slow line, in ms. Further packets are lost, as in the queue of a router. */
const QUEUE_MS = 300
/** Bytes that wait at least, however slow the line is: 32 packets. */
const QUEUE_BYTES = 48_000

export class Lines {
  readonly #random: () => number
  #conditions: Conditions
  #cut = new Set<string>()
  /** When the line of each node has sent all packets so far. */
  readonly #freeAt = new Map<number, number>()
  /** When the last packet of each pair arrives. */
  readonly #lastArrival = new Map<string, number>()

  /** @param random uniform in [0, 1) */
  constructor(conditions: Conditions, random: () => number) {
    this.#random = random
    this.#conditions = conditions
    this.set(conditions)
  }

  set(conditions: Conditions): void {
    this.#conditions = conditions
    this.#cut = new Set(conditions.cuts.map(([from, to]) => `${from} ${to}`))
  }

  /**
   * A packet is sent.
   * @param now in ms
   * @returns when it arrives: twice, once or never
   */
  send(from: number, to: number, bytes: number, now: number): number[] {
    const line = this.#conditions.lines[from]
    const pair = `${from} ${to}`
    if (line === undefined || this.#cut.has(pair)) return []
    const sentAt = this.#sentAt(from, line, bytes, now)
    if (sentAt === undefined || this.#happens(line.loss)) return []
    const { delay, jitter = 0 } = line
    if (this.#happens(line.reordered)) return [sentAt + 2 * delay + 5]
    const arrival = Math.max(this.#lastArrival.get(pair) ?? 0, sentAt + delay + jitter * this.#random())
    this.#lastArrival.set(pair, arrival)
    return this.#happens(line.duplicates) ? [arrival, arrival] : [arrival]
  }

  #sentAt(from: number, { rate }: Line, bytes: number, now: number): number | undefined {
    if (rate === undefined) return now
    const begin = Math.max(now, this.#freeAt.get(from) ?? 0)
    if (begin - now > Math.max(QUEUE_MS, (1000 * QUEUE_BYTES) / rate)) return undefined
    const sentAt = begin + (1000 * bytes) / rate
    this.#freeAt.set(from, sentAt)
    return sentAt
  }

  #happens(share = 0): boolean {
    return share > 0 && this.#random() < share
  }
}
