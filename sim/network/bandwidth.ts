/**
 * When messages have left: a link and a node carry a limited number of bytes in a virtual millisecond, in each direction, and
 * messages queue. A message passes the node that sends it, the link and the node that receives it at the same time, so the last of
 * the three decides. A link is busy until all of its last message is taken.
 */
export class Bandwidth {
  readonly #link: number
  readonly #node: number
  /** Time at which each directed link is free, by its nodes. */
  readonly #links = new Map<string, number>()
  /** Times at which each node has sent, and has taken, everything that is queued. */
  readonly #sent = new Map<number, number>()
  readonly #taken = new Map<number, number>()

  /** 0: no limit. */
  constructor({ bandwidth, nodeBandwidth }: { readonly bandwidth: number; readonly nodeBandwidth: number }) {
    this.#link = bandwidth
    this.#node = nodeBandwidth
  }

  get #isLimited(): boolean {
    return this.#link > 0 || this.#node > 0
  }

  /** Time at which the link has transmitted everything queued on it. Not later than now if it is idle. */
  freeAt(from: number, to: number): number {
    return this.#isLimited ? (this.#links.get(`${from}>${to}`) ?? 0) : 0
  }

  /** Queues a message. @returns when all of it has left */
  departure(now: number, from: number, to: number, bytes: number): number {
    if (!this.#isLimited) return now
    let time = Math.max(now, this.freeAt(from, to)) + (this.#link > 0 ? bytes / this.#link : 0)
    if (this.#node > 0) {
      for (const [queue, node] of [
        [this.#sent, from],
        [this.#taken, to]
      ] as const) {
        const end = Math.max(now, queue.get(node) ?? 0) + bytes / this.#node
        queue.set(node, end)
        time = Math.max(time, end)
      }
    }
    this.#links.set(`${from}>${to}`, time)
    return time
  }
}
