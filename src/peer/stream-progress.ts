/** A peer's progress across its runs: progressive sums, and the position in its stream. */
import { type Learner, ProgressiveMetrics, type Score, TimedSums } from '../learner/index.js'
import { RunningMoments, type StreamOptions } from '../streams/index.js'
import type { LearnerInit, PeerMetrics, ProgressSums, SavedProgress } from './thread-messages.js'

export class StreamProgress {
  inputs: number
  /** Rows of the stream that have been read, in this run and earlier ones. */
  position: number
  readonly score: Score
  /** Moments by which numeric columns are scaled; undefined without scaling. */
  readonly moments: RunningMoments | undefined
  readonly #stream: string | undefined
  readonly #classifies: boolean
  readonly #metrics: ProgressiveMetrics | undefined
  readonly #minute = new TimedSums()
  /** Summed loss of earlier runs, whose outcomes are not stored. */
  readonly #earlierLoss: number

  constructor({ progress, stream, spec }: LearnerInit, { classifies, outcomeKind }: Learner, now: number) {
    this.inputs = progress?.inputs ?? 0
    this.#metrics = outcomeKind && new ProgressiveMetrics(outcomeKind)
    this.#earlierLoss = progress?.loss ?? 0
    this.score = { loss: this.#earlierLoss, hits: progress?.hits ?? 0, outcomes: this.#metrics }
    // A run without a resumable stream keeps the position of the last run that had one.
    this.#stream = streamKey(stream) ?? progress?.stream
    this.position = progress?.stream === this.#stream ? (progress?.position ?? 0) : 0
    if (spec.features.scale === 'standard') this.moments = RunningMoments.restore(progress?.moments ?? [])
    this.#classifies = classifies
    this.#minute.note(now, this.sums)
  }

  /** Figures of this run. @param now a monotonic clock in milliseconds */
  metrics(now: number): PeerMetrics | undefined {
    this.#minute.note(now, this.sums)
    const metrics = this.#metrics?.metrics(this.score.loss - this.#earlierLoss)
    return metrics && { ...metrics, minute: this.#minute.figures(now, this.sums) }
  }

  /** The sums and the position, without the moments. */
  get sums(): ProgressSums {
    const { loss, hits } = this.score
    const scored = { inputs: this.inputs, loss, hits: this.#classifies ? hits : undefined }
    return { ...scored, stream: this.#stream, position: this.position }
  }

  /** Plain data from which a run can resume. */
  progress(): SavedProgress {
    return { ...this.sums, moments: this.moments?.save() }
  }
}

/** Identifies a stream, so that a restarted peer resumes only the stream that it was reading. */
function streamKey(stream: StreamOptions | undefined): string | undefined {
  if (stream === undefined || stream.data === '-') return undefined
  const { strict: _strict, passes: _passes, maxRows: _maxRows, ...rows } = stream
  return JSON.stringify(rows)
}
