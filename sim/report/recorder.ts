/** Records the timeline of a run in bounded memory: from the start, or from the first partition if there is one. */
import type { PredictorId } from '../../src/admb/index.js'
import type { Fault, RunObserver, Scenario } from '../index.js'
import type { PredictorEntry, Timeline } from './timeline.js'
import { WindowRecorder } from './window.js'

/** Maximum number of rows of a plot. */
const MAX_ROWS = 64
/** Maximum number of predictor ids; the oldest ones are removed. */
const MAX_IDS = 4096

const AWAY_FROM: ReadonlySet<string> = new Set(['crash', 'pause', 'leave'])
const BACK_AT: ReadonlySet<string> = new Set(['restart', 'resume', 'join'])
const START: PredictorEntry = { id: 0, updates: 0 }

export class TimelineRecorder {
  readonly #watched: readonly number[]
  readonly #held: PredictorEntry[]
  readonly #isAway: boolean[]
  readonly #ids = new Map<string, PredictorEntry>()
  #window: WindowRecorder
  #startsWithCut = false
  #maxUpdates = 0
  #predictorCount = 0

  constructor({ nodes }: Scenario) {
    const rows = Math.min(nodes, MAX_ROWS)
    this.#watched = Array.from({ length: rows }, (_, row) => Math.floor((row * nodes) / rows))
    this.#held = new Array(nodes).fill(START)
    this.#isAway = new Array(nodes).fill(false)
    this.#window = this.#open(0)
  }

  /** The observer to pass to `simulate`. */
  get observer(): RunObserver {
    return {
      onPredictorChange: (time, node, id) => {
        const held = this.#identify(id)
        this.#held[node] = held
        this.#isAway[node] = false
        this.#maxUpdates = Math.max(this.#maxUpdates, held.updates)
        this.#window.change(time, node, held, this.#maxUpdates)
      },
      onFault: (time, fault) => this.#faultInjected(time, fault)
    }
  }

  /** @returns undefined for an algorithm that does not identify its predictors */
  finish(until: number): Timeline | undefined {
    return this.#predictorCount === 0 ? undefined : this.#window.finish(until)
  }

  #faultInjected(time: number, fault: Fault): void {
    const { kind } = fault
    if ('node' in fault) {
      if (!AWAY_FROM.has(kind) && !BACK_AT.has(kind)) return
      this.#isAway[fault.node] = AWAY_FROM.has(kind)
      this.#window.change(time, fault.node, this.#heldBy(fault.node), this.#maxUpdates)
    } else if ('sides' in fault) {
      if (!this.#startsWithCut) this.#window = this.#open(time, fault.sides)
      this.#startsWithCut = true
      this.#window.mark({ time, what: 'cut' })
    } else if (kind === 'heal') this.#window.mark({ time, what: 'healed' })
  }

  #open(from: number, sides?: ArrayLike<number>): WindowRecorder {
    const held = this.#watched.map(node => this.#heldBy(node))
    return new WindowRecorder({ from, watched: this.#watched, held, sides })
  }

  #heldBy(node: number): PredictorEntry | undefined {
    return this.#isAway[node] ? undefined : this.#held[node]
  }

  #identify({ updates, origin, incarnation, digest }: PredictorId): PredictorEntry {
    if (updates === 0) return START
    const key = `${updates} ${origin} ${incarnation} ${digest}`
    let held = this.#ids.get(key)
    if (held === undefined) {
      held = { id: ++this.#predictorCount, updates }
      this.#ids.set(key, held)
      const [oldest] = this.#ids.keys()
      if (this.#ids.size > MAX_IDS) this.#ids.delete(oldest)
    }
    return held
  }
}
