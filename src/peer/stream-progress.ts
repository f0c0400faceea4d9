/** A peer's progress across its runs: progressive sums, and the position in its stream. */

import { Preparation, type Rows, RunningMoments, type StreamOptions, type StreamPosition } from '../data/parsing.js'
import {
  type Baseline,
  baselineFor,
  type Drift,
  type Examples,
  hasPlainLoss,
  type Learner,
  ProgressiveMetrics,
  type Score,
  type TimeWindows,
  uselessLoss
} from '../learning/index.js'
import type { PeerMetrics } from './status.js'
import type { LearnerInit, ProgressSums, SavedProgress } from './thread-messages.js'

/** A stream, and how far it has been read. */
interface StreamState {
  /** Identifies the stream. */
  readonly stream: string | undefined
  /** Rows of the stream that have been read, in this run and earlier ones. */
  readonly position: number
  /** Where they are in the source; undefined if the source knows only their number. */
  readonly place: StreamPosition | undefined
}

export class StreamProgress {
  inputs: number
  readonly score: Score
  /** Standardises rows and multiplies interactions; undefined if rows stay as they are. */
  readonly preparation: Preparation | undefined
  readonly #moments: RunningMoments
  readonly #isStandard: boolean
  /** State of the last run whose stream can be resumed. */
  readonly #stored: StreamState
  readonly #stream: string | undefined
  readonly #classifies: boolean
  readonly #metrics: ProgressiveMetrics | undefined
  readonly #now: () => number
  readonly #windows: TimeWindows | undefined
  /** Summed loss of earlier runs, whose outcomes are not stored. */
  readonly #earlierLoss: number
  readonly #baseline: Baseline | undefined
  readonly #hasPlainLoss: boolean
  #isResumable = false
  #position = 0
  #place: (() => StreamPosition) | undefined

  /** @param now a monotonic clock in milliseconds */
  constructor(init: LearnerInit, { classifies, outcomeKind }: Learner, now: () => number) {
    const { progress, stream, spec, drift } = init
    this.#now = now
    this.#baseline = baselineFor(spec, classifies)
    this.#hasPlainLoss = hasPlainLoss(spec)
    this.inputs = progress?.inputs ?? 0
    this.#metrics = outcomeKind && new ProgressiveMetrics(outcomeKind)
    if (drift !== undefined) this.#metrics?.watchDrift()
    this.#windows = this.#metrics?.watchTime()
    this.#earlierLoss = progress?.loss ?? 0
    const { hits = 0, surplus = 0 } = progress ?? {}
    this.score = { loss: this.#earlierLoss, hits, surplus, outcomes: this.#metrics }
    this.#stored = { stream: progress?.stream, position: progress?.position ?? 0, place: progress?.place }
    this.#stream = stream && streamKey(stream)
    const { columns: schema, hashBits, constant, scale } = spec.features
    this.#isStandard = scale === 'standard'
    this.#moments = RunningMoments.restore(progress?.moments ?? [])
    const scaling = { moments: this.#moments, frozen: false }
    this.preparation = Preparation.for({ schema, hashBits, constant, scale }, scaling)
    this.#classifies = classifies
  }

  /** Figures of this run. */
  get metrics(): PeerMetrics | undefined {
    this.#windows?.arrive(this.#now())
    const metrics = this.#metrics?.metrics(this.score.loss - this.#earlierLoss)
    const baseline = this.#baseline?.figures
    return metrics && { ...metrics, baseline }
  }

  /** What to say of this run's loss if a constant prediction has it as well. */
  get useless(): string | undefined {
    const total = this.#hasPlainLoss ? this.#metrics?.metrics(this.score.loss - this.#earlierLoss).total : undefined
    return total && uselessLoss(total.inputs, total.loss, this.#baseline?.figures)
  }

  /** Rows are scored next. */
  begins(): void {
    this.#windows?.arrive(this.#now())
  }

  /** Rows [from, to) were scored. */
  scored(rows: Examples, from: number, to: number): void {
    this.#baseline?.add(rows, from, to)
  }

  /** Drift detected in this run; undefined if it is not looked for. */
  get drift(): Drift | undefined {
    return this.#metrics?.drift
  }

  /** The position at which the stream continues, or the number of rows to skip. */
  get resume(): StreamPosition | number | undefined {
    const { stream, position, place } = this.#stored
    if (stream === undefined || stream !== this.#stream) return undefined
    return place ?? position
  }

  /** Starts to read the stream. @param isResumable whether a later run can continue it */
  begin(isResumable: boolean): void {
    this.#isResumable = isResumable
    const { resume } = this
    this.#position = !isResumable || resume === undefined ? 0 : typeof resume === 'number' ? resume : resume.rows
    this.#place = resume === undefined || typeof resume === 'number' ? undefined : () => resume
  }

  /** Notes that rows [from, to) of a batch have been read. */
  read({ positionAfter }: Rows, from: number, to: number): void {
    this.#position += to - from
    this.#place = positionAfter && (() => positionAfter(to))
  }

  /** The sums and the position, without the moments. */
  get sums(): ProgressSums {
    const { loss, hits, surplus } = this.score
    const scored = { inputs: this.inputs, surplus, loss, hits: this.#classifies ? hits : undefined }
    // A run without a resumable stream keeps the position of the last run that had one.
    if (!this.#isResumable) return { ...scored, ...this.#stored }
    const place = this.#place?.()
    return { ...scored, stream: this.#stream, position: place?.rows ?? this.#position, place }
  }

  /** Plain data from which a run can resume. */
  progress(): SavedProgress {
    return { ...this.sums, ...(this.#isStandard && { moments: this.#moments.save() }) }
  }
}

/** The options that determine which rows a stream has, in which order. */
export function streamKey({ data, format, shard, shuffleWindow, seed }: StreamOptions): string {
  return JSON.stringify({ data, format, shard, shuffleWindow, seed })
}
