/**
 * Progressive metrics: figures over all inputs since the start, and over the last ones. An input costs a few nanoseconds; the
 * figures of a window are computed from its outcomes when they are asked for.
 */
import { type Drift, DriftDetector } from '../drift.js'
import { OUTCOME_ROWS, type Outcome, type OutcomeKind, type Outcomes, widthOf } from './confusion.js'
import type { Figures, Metrics } from './figures.js'
import { createTally, figuresOf, type Tally } from './tallies.js'
import { TimeWindows } from './time-windows.js'

/** Sizes of the reported windows, in inputs. */
const WINDOWS = [1000, 10_000] as const
const CAPACITY = WINDOWS[WINDOWS.length - 1]

/** Figures of a run of predictions: since the start, and over windows of the last inputs. */
export class ProgressiveMetrics implements Outcomes {
  readonly entries: Float64Array
  readonly #kind: OutcomeKind
  readonly #width: number
  readonly #total: Tally
  /** The newest outcomes, a ring. */
  readonly #ring: Float64Array
  /** Weights of the newest outcomes, once one has a weight other than 1. */
  #weights: Float64Array | undefined
  #inputs = 0
  /** Σ(weight − 1). */
  #surplus = 0
  #drift: DriftDetector | undefined
  #timed: TimeWindows | undefined
  /** The last figures: an idle peer reports them once a second. */
  #computed: { readonly inputs: number; readonly loss: number; readonly figures: Omit<Metrics, 'byTime'> } | undefined
  /** Mean loss of the last minibatch. */
  #lastMean = Number.NaN

  constructor(kind: OutcomeKind) {
    this.#kind = kind
    this.#width = widthOf(kind)
    this.#total = createTally(kind)
    this.entries = new Float64Array(OUTCOME_ROWS * this.#width)
    this.#ring = new Float64Array(CAPACITY * this.#width)
  }

  /** Looks for drift in the losses of further outcomes. */
  watchDrift(): void {
    const kind = this.#kind
    // A squared error has no natural unit, and log-loss over a vocabulary is far above one.
    const hasUnit = kind.kind === 'sums' ? kind.predicts === 'class' : kind.kind !== 'number'
    this.#drift = new DriftDetector(hasUnit)
  }

  /** Measures further outcomes over windows by the time of their arrival as well. */
  watchTime(): TimeWindows {
    this.#timed = new TimeWindows(this.#kind)
    return this.#timed
  }

  /** The drift that was detected; undefined if it is not looked for. */
  get drift(): Drift | undefined {
    return this.#drift?.drift
  }

  commit(rows: number, weight = 1, loss?: number): void {
    const { entries } = this
    if (this.#drift !== undefined) this.#observe(this.#drift, rows)
    this.#timed?.add(entries, rows, weight, loss ?? this.#lossOfEntries(rows))
    const ring = this.#ring
    const end = rows * this.#width
    this.#total.add(entries, 0, end, weight)
    if (weight !== 1 || this.#weights !== undefined) this.#weigh(rows, weight)
    let at = (this.#inputs % CAPACITY) * this.#width
    for (let i = 0; i < end; i++) {
      ring[at] = entries[i]
      if (++at === ring.length) at = 0
    }
    this.#inputs += rows
  }

  /** Inputs since the start. */
  get inputs(): number {
    return this.#inputs
  }

  /** The newest outcome; undefined before the first, and if only sums are known. */
  get last(): Outcome | undefined {
    const kind = this.#kind
    if (this.#inputs === 0 || kind.kind === 'sums') return undefined
    const at = ((this.#inputs - 1) % CAPACITY) * this.#width
    const [label, score] = this.#ring.subarray(at, at + 2)
    if (kind.kind === 'classes') return { label, prediction: score }
    if (kind.kind === 'two-class') return { label, prediction: Number(score > 0) }
    return { label, prediction: kind.loss.predict?.(score) ?? score }
  }

  /** @param loss summed loss of all inputs since the start */
  metrics(loss: number): Metrics {
    const inputs = this.#inputs
    if (this.#computed?.inputs !== inputs || this.#computed.loss !== loss)
      this.#computed = { inputs, loss, figures: this.#figures(loss) }
    return { ...this.#computed.figures, byTime: this.#timed?.figures }
  }

  #figures(loss: number): Omit<Metrics, 'byTime'> {
    const weight = this.#inputs + this.#surplus
    const mean = weight > 0 ? loss / weight : 0
    return {
      total: figuresOf(this.#kind, this.#inputs, mean, this.#total),
      recent: WINDOWS.map(window => ({ window, ...this.recent(window) }))
    }
  }

  /** Figures of the last `window` inputs, at most 10,000. */
  recent(window: number): Figures {
    const inputs = Math.min(window, CAPACITY, this.#inputs)
    const tally = createTally(this.#kind)
    let loss = 0
    let total = 0
    for (const [from, end] of this.#stretches(inputs)) {
      if (this.#weights === undefined) tally.add(this.#ring, from, end)
      for (let i = from; i < end; i += this.#width) {
        const weight = this.#weights?.[i / this.#width] ?? 1
        if (this.#weights !== undefined) tally.add(this.#ring, i, i + this.#width, weight)
        total += weight
        loss += weight * this.#lossOf(this.#ring, i)
      }
    }
    return figuresOf(this.#kind, inputs, total > 0 ? loss / total : 0, tally)
  }

  /** Records the weight of the next outcomes. */
  #weigh(rows: number, weight: number): void {
    this.#weights ??= new Float64Array(CAPACITY).fill(1)
    for (let row = 0; row < rows; row++) this.#weights[(this.#inputs + row) % CAPACITY] = weight
    this.#surplus += rows * (weight - 1)
  }

  /** The parts of the ring that hold the last inputs, oldest first. */
  #stretches(inputs: number): (readonly [from: number, end: number])[] {
    const width = this.#width
    const end = this.#inputs % CAPACITY
    if (inputs <= end) return [[(end - inputs) * width, end * width]]
    return [
      [(CAPACITY - inputs + end) * width, this.#ring.length],
      [0, end * width]
    ]
  }

  #lossOfEntries(rows: number): number {
    let loss = 0
    for (let row = 0; row < rows; row++) loss += this.#lossOf(this.entries, row * this.#width)
    return loss
  }

  #lossOf(outcomes: Float64Array, at: number): number {
    if (this.#kind.kind === 'sums') return outcomes[at]
    return this.#kind.kind === 'classes' ? outcomes[at + 3] : this.#kind.loss.value(outcomes[at + 1], outcomes[at])
  }

  #observe(detector: DriftDetector, rows: number): void {
    const { entries } = this
    const kind = this.#kind
    if (kind.kind === 'two-class' && kind.isLogLoss) {
      // One exponential instead of two and a logarithm.
      for (let i = 0; i < 2 * rows; i += 2) detector.addLevel(1 / (1 + Math.exp((2 * entries[i] - 1) * entries[i + 1])))
      return
    }
    if (kind.kind !== 'sums') {
      for (let row = 0; row < rows; row++) detector.add(this.#lossOf(entries, row * this.#width))
      return
    }
    // The rows of a minibatch share a mean, which is one observation.
    if (entries[0] === this.#lastMean) detector.skip(rows)
    else detector.add(entries[0], rows)
    this.#lastMean = entries[0]
  }
}
