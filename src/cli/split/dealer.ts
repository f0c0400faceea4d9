/**
 * Deals the blocks of a stream to peers, as a state machine without clock and I/O. Each block is acknowledged by exactly one peer.
 *
 * A peer has a few blocks at a time, so that a slow one gets fewer. A block that a peer certainly has not accepted goes to another.
 * A block in doubt, which the peer may have learned, stays with its peer and is sent again under its number, before any other block.
 */
import { KEY_WINDOW } from '../../peer/learned-keys.js'

/** Blocks that a peer has at a time. */
export const AHEAD = 4

/** A block that is sent to a peer, under a number that the peer has for no other block. */
export interface Delivery<Block> {
  readonly peer: number
  readonly number: number
  readonly block: Block
}

/** A block that is not acknowledged. */
export interface Open<Block> extends Delivery<Block> {
  /** Whether it is on the way to the peer. */
  isSent: boolean
  /** Whether an earlier attempt to send it may have been accepted. */
  isDoubtful: boolean
}

interface Target<Block> {
  /** Number of the next block. */
  next: number
  /** By number, in order. */
  readonly open: Map<number, Open<Block>>
  /** Whether it gets no blocks until it has returned. */
  isAway: boolean
}

/** What a later run continues with. */
export interface DealerState<Block> {
  /** Blocks that no peer has accepted. */
  readonly waiting: readonly Block[]
  readonly targets: readonly { readonly next: number; readonly open: readonly (readonly [number: number, Block])[] }[]
}

export class Dealer<Block> {
  readonly #targets: readonly Target<Block>[]
  readonly #waiting: Block[]
  /** The peer that got the last block. */
  #last = 0

  constructor(peers: number, { waiting, targets }: DealerState<Block> = { waiting: [], targets: [] }) {
    this.#waiting = [...waiting]
    this.#targets = Array.from({ length: peers }, (_, peer) => {
      const { next = 1, open = [] } = targets[peer] ?? {}
      return {
        next,
        open: new Map(
          open.map(([number, block]) => [number, { peer, number, block, isSent: false, isDoubtful: true }])
        ),
        isAway: false
      }
    })
  }

  /** Whether a peer has room for another block of the source. */
  get wantsBlock(): boolean {
    return this.#waiting.length === 0 && this.#freest !== undefined
  }

  add(block: Block): void {
    this.#waiting.push(block)
  }

  /** The next block to send now; undefined if there is none. */
  take(): Delivery<Block> | undefined {
    const again = this.open.find(({ peer, isSent }) => !isSent && !this.#targets[peer].isAway)
    const peer = again?.peer ?? (this.#waiting.length > 0 ? this.#freest : undefined)
    if (peer === undefined) return undefined
    const one = again ?? this.#begin(peer, this.#waiting.shift() as Block)
    one.isSent = true
    return one
  }

  #begin(peer: number, block: Block): Open<Block> {
    const target = this.#targets[peer]
    const one = { peer, number: target.next++, block, isSent: false, isDoubtful: false }
    target.open.set(one.number, one)
    this.#last = peer
    return one
  }

  /** The peer has learned the block. */
  acknowledged({ peer, number }: Delivery<Block>): void {
    this.#targets[peer].open.delete(number)
  }

  /** The peer has not accepted the block this time, and takes no others until it has returned. */
  refused(delivery: Delivery<Block>): void {
    const { peer, number, block } = delivery
    const target = this.#targets[peer]
    // An earlier attempt may have been accepted.
    if (target.open.get(number)?.isDoubtful) this.lost(delivery)
    else {
      target.isAway = true
      target.open.delete(number)
      this.#waiting.unshift(block)
    }
  }

  /** The peer may have learned the block, and takes no others until it has returned. */
  lost({ peer, number }: Delivery<Block>): void {
    const target = this.#targets[peer]
    target.isAway = true
    const one = target.open.get(number)
    if (one) Object.assign(one, { isSent: false, isDoubtful: true })
  }

  /** No peer can learn the block as it is, and none has. @param parts replace it */
  rejected({ peer, number }: Delivery<Block>, parts: readonly Block[]): void {
    this.#targets[peer].open.delete(number)
    this.#waiting.unshift(...parts)
  }

  /** The peer may be tried again. */
  returned(peer: number): void {
    this.#targets[peer].isAway = false
  }

  /** Blocks that are on the way to a peer, or that it may have learned. */
  get open(): readonly Open<Block>[] {
    return this.#targets.flatMap(({ open }) => [...open.values()])
  }

  /** Whether a peer gets no blocks until it has returned. */
  isAway(peer: number): boolean {
    return this.#targets[peer].isAway
  }

  /** Blocks that no peer has accepted. */
  get waiting(): readonly Block[] {
    return this.#waiting
  }

  /** Whether every block is acknowledged. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.open.length === 0
  }

  get state(): DealerState<Block> {
    const targets = this.#targets.map(({ next, open }) => ({
      next,
      open: [...open].map(([number, { block }]) => [number, block] as const)
    }))
    return { waiting: [...this.#waiting], targets }
  }

  /** The peer with room that has the fewest blocks; of several, the next one in turn. */
  get #freest(): number | undefined {
    let best: number | undefined
    const count = this.#targets.length
    for (let i = 1; i <= count; i++) {
      const peer = (this.#last + i) % count
      const { open } = this.#targets[peer]
      if (this.#hasRoom(peer) && (best === undefined || open.size < this.#targets[best].open.size)) best = peer
    }
    return best
  }

  #hasRoom(peer: number): boolean {
    const { open, next, isAway } = this.#targets[peer]
    if (isAway || open.size >= AHEAD) return false
    for (const { isDoubtful } of open.values()) if (isDoubtful) return false
    // A peer remembers a limited number of keys.
    const lowest = Math.min(next, ...open.keys())
    return next - lowest < KEY_WINDOW
  }
}
