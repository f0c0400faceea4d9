/**
 * The time that an update takes, t_u. A node that makes one takes no message and sends nothing until the update is made; what arrives
 * waits. Inputs are predicted with the predictor before the update, and the node does not learn from them.
 */
import type { Algorithm, Served, World } from '../world.js'

/** Tag of the timer that expires when an update is made. */
const TAG = -4

/** A service predicts nothing. */
const SERVICE = { serving: { parameters: [], average: [] }, version: undefined }

interface Busy {
  /** What nodes predict with, before the updates. */
  readonly serving: Served
  readonly version: number | undefined
  readonly waiting: (() => void)[]
  hasTick: boolean
}

export class UpdateTime {
  readonly #world: World
  readonly #time: number
  readonly #busy = new Map<number, Busy>()
  /** What the node of the current event predicted with before it. */
  #before: Pick<Busy, 'serving' | 'version'> | undefined
  #dropped = 0

  constructor(world: World, time: number) {
    this.#world = world
    this.#time = time
  }

  isBusy(node: number): boolean {
    return this.#busy.has(node)
  }

  /** A node makes an update, during its current event. */
  begin(node: number): void {
    if (this.#before === undefined || this.isBusy(node)) return
    this.#busy.set(node, { ...this.#before, waiting: [], hasTick: false })
    this.#world.startTimer(this.#time, node, TAG)
  }

  /** Runs an action when the update of a node is made. */
  whenMade(node: number, action: () => void): void {
    this.#busy.get(node)?.waiting.push(action)
  }

  /** The algorithm, with nodes that are busy during updates. */
  wrap(inner: Algorithm): Algorithm {
    const event = (node: number, action: () => void): void => {
      if (this.isBusy(node)) {
        this.whenMade(node, action)
        return
      }
      this.#before = node < 0 ? SERVICE : { serving: inner.serving(node), version: inner.version?.(node) }
      action()
      this.#before = undefined
    }
    const { version } = inner
    return {
      ...inner,
      ...(version && { version: node => this.#busy.get(node)?.version ?? version(node) }),
      serving: node => this.#busy.get(node)?.serving ?? inner.serving(node),
      input: (node, examples, number) => {
        if (this.isBusy(node)) this.#dropped += examples.size
        else event(node, () => inner.input(node, examples, number))
      },
      tick: node => {
        const busy = this.#busy.get(node)
        if (busy?.hasTick) return
        if (busy) busy.hasTick = true
        event(node, () => inner.tick(node))
      },
      receive: (to, from, message) => event(to, () => inner.receive(to, from, message)),
      timer: (node, tag) => {
        if (tag === TAG) this.#made(node, event)
        else event(node, () => inner.timer(node, tag))
      },
      crash: node => {
        this.#busy.delete(node)
        inner.crash(node)
      },
      totals: () => {
        const { discarded, ...totals } = inner.totals()
        return { ...totals, ...(discarded !== undefined && { discarded: discarded + this.#dropped }) }
      }
    }
  }

  /** What waited runs in order; another update may begin meanwhile. */
  #made(node: number, event: (node: number, action: () => void) => void): void {
    const busy = this.#busy.get(node)
    this.#busy.delete(node)
    for (const action of busy?.waiting ?? []) event(node, action)
  }
}
