/** What the log says about the master of DMB and MaWo-DMB, and about peers for which a peer waits. */
import type { Log } from '../network/index.js'

/** Time of waiting for the same peers after which there is a line, in ms. */
const WAIT_MS = 5000

export class MasterWatch {
  readonly #self: string
  readonly #log: Log
  readonly #label: (peer: string) => string
  #master = ''
  #waitsFor: readonly string[] = []
  #since = 0
  #updates = -1
  #hasWarned = false

  constructor(self: string, log: Log, label: (peer: string) => string) {
    this.#self = self
    this.#log = log
    this.#label = label
  }

  /** Why the peer learns nothing now; undefined if it does not wait for others, or only for a short time. */
  get problem(): string | undefined {
    if (!this.#hasWarned) return undefined
    const [first, ...others] = this.#waitsFor
    // Statuses contain ASCII characters.
    const name = this.#label(first).replaceAll(/[^ -~]/g, '?')
    return `DMB waits for gradients of ${name}${others.length > 0 ? ` and ${others.length} more` : ''}`
  }

  /**
   * @param master root of the tree
   * @param waitsFor peers for which the peer waits
   * @param updates of its predictor
   * @param now milliseconds of a monotonic clock
   */
  observe(master: string, waitsFor: readonly string[], updates: number, now: number): void {
    if (master !== this.#master) {
      const line = master === this.#self ? 'this peer is the master' : `the master is ${this.#label(master)}`
      this.#log('info', line, { master })
      this.#master = master
    }
    // The peer's own stream may be slow, which is no reason to wait for others.
    const others = waitsFor.filter(peer => peer !== this.#self)
    const isSame = updates === this.#updates && others.join() === this.#waitsFor.join()
    this.#updates = updates
    if (!isSame) {
      if (this.#hasWarned && others.length === 0) this.#log('info', 'DMB continues', {})
      this.#waitsFor = others
      this.#since = now
      this.#hasWarned = false
    } else if (others.length > 0 && !this.#hasWarned && now - this.#since >= WAIT_MS) {
      this.#hasWarned = true
      this.#log('warn', `${this.problem}: a peer that has crashed must return, or leave the network`, {})
    }
  }
}
