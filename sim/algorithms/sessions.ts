/**
 * Sessions between neighbours, as their transport shows them: a frame waits for the journal, and a neighbour confirms the frames that it
 * takes.
 */
import { isFragment } from '../../src/admb/index.js'
import type { SimulatedDisk } from '../faults/disk.js'
import type { World } from '../world.js'

/** What a node has exchanged with a neighbour in a session. */
interface Exchanged {
  readonly session: number
  /** Whether the session has not ended at this node. */
  isOpen: boolean
  /** Whether a frame waits for the journal. */
  isHeld: boolean
  /** Number of frames sent. */
  sent: number
  /** Number of the neighbour's last frame that the node has received. */
  last: number
  /** Numbers of its last frames, and when they arrived, if frames can wait for a line. */
  readonly received: { readonly time: number; readonly number: number }[]
  isInParts: boolean
}

/** What a frame would show if its transport confirmed frames. */
interface FrameMark {
  readonly session: number
  /** Its number; 0 for one of which a fragment may be lost in a partition. */
  readonly number: number
  /** Number of the last frame that its sender has taken. */
  readonly taken: number
  /** When all of it has left. */
  readonly left: number
}

/** A property of the frame itself costs much less than a weak map. */
interface MarkedFrame extends Uint8Array {
  mark?: FrameMark
}

/** Received frames that are remembered: more than arrive while a frame is on a slow line. */
const MAX_RECEIVED = 64

export class Sessions {
  readonly #world: World
  /** By node and neighbour. */
  readonly #exchanged: readonly Map<number, Exchanged>[]
  /** Whether frames can wait for a line. */
  readonly #isLimited: boolean

  constructor(world: World) {
    const { bandwidth, nodeBandwidth } = world.scenario
    this.#world = world
    this.#exchanged = world.topology.neighbours.map(() => new Map())
    this.#isLimited = bandwidth > 0 || nodeBandwidth > 0
  }

  open(node: number, neighbour: number, session: number): void {
    this.close(node, neighbour)
    const sent = { isHeld: false, sent: 0, isInParts: false }
    this.#exchanged[node].set(neighbour, { session, isOpen: true, ...sent, last: 0, received: [] })
  }

  close(node: number, neighbour: number): void {
    const ended = this.#exchanged[node].get(neighbour)
    if (ended) ended.isOpen = false
  }

  closeAll(node: number): void {
    for (const session of this.#exchanged[node].values()) session.isOpen = false
  }

  /** Whether a frame for the neighbour waits for the journal. */
  isHeld(node: number, neighbour: number): boolean {
    return this.#exchanged[node].get(neighbour)?.isHeld ?? false
  }

  /** Sends a frame as soon as the records before it are durable, unless the session has ended. */
  send(node: number, neighbour: number, frame: Uint8Array, disk: SimulatedDisk): void {
    const session = this.#exchanged[node].get(neighbour) as Exchanged
    if (disk.isDurable) {
      this.#leave(node, neighbour, frame, session)
      return
    }
    // As in peers, the other fragments of the frame may be encoded.
    session.isHeld = !isFragment(frame)
    disk.whenDurable(() => {
      session.isHeld = false
      if (session.isOpen) this.#leave(node, neighbour, frame, session)
    })
  }

  #leave(node: number, neighbour: number, frame: MarkedFrame, exchanged: Exchanged): void {
    const world = this.#world
    world.send(node, neighbour, frame, frame.length)
    if (!world.isOrdered) return
    const { session, isInParts, last: taken } = exchanged
    exchanged.isInParts = isFragment(frame)
    if (exchanged.isInParts) return
    const number = ++exchanged.sent
    const left = Math.max(world.now, world.freeAt(node, neighbour))
    frame.mark = { session, number: isInParts ? 0 : number, taken, left }
  }

  /**
   * A frame arrives.
   * @returns number of the last frame that its sender has taken. Confirmations overtake a frame that waits for a slow line, so what
   *   the sender has taken meanwhile counts. 0 if nothing is known
   */
  confirmed(node: number, from: number, { mark }: MarkedFrame): number {
    const exchanged = this.#exchanged[node].get(from)
    if (mark === undefined || mark.session !== exchanged?.session) return 0
    if (mark.number > exchanged.last) exchanged.last = mark.number
    if (!this.#isLimited) return mark.taken
    exchanged.received.push({ time: this.#world.now, number: exchanged.last })
    if (exchanged.received.length > MAX_RECEIVED) exchanged.received.shift()
    const sender = this.#exchanged[from].get(node)
    const received = sender?.session === mark.session ? sender.received : []
    return Math.max(mark.taken, received.findLast(({ time }) => time < mark.left)?.number ?? 0)
  }
}
