/** A peer's progress across its runs: progressive sums, and the position in its stream. */
import type { Score } from '../learner/index.js'
import { RunningMoments, type StreamOptions } from '../streams/index.js'
import type { LearnerInit, ProgressSums, SavedProgress } from './thread-messages.js'

export class StreamProgress {
  inputs: number
  /** Rows of the stream that have been read, in this run and earlier ones. */
  position: number
  readonly score: Score
  /** Moments by which numeric columns are scaled; undefined without scaling. */
  readonly moments: RunningMoments | undefined
  readonly #stream: string | undefined
  readonly #classifies: boolean

  constructor({ progress, stream, spec }: LearnerInit, classifies: boolean) {
    this.inputs = progress?.inputs ?? 0
    this.score = { loss: progress?.loss ?? 0, hits: progress?.hits ?? 0 }
    // A run without a resumable stream keeps the position of the last run that had one.
    this.#stream = streamKey(stream) ?? progress?.stream
    this.position = progress?.stream === this.#stream ? (progress?.position ?? 0) : 0
    if (spec.features.scale === 'standard') this.moments = RunningMoments.restore(progress?.moments ?? [])
    this.#classifies = classifies
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
