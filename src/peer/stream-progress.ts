/** What a peer has learned from so far, across its runs: progressive sums, and how far it has come in its stream. */
import type { Score } from '../learner/index.js'
import { RunningMoments, type StreamOptions } from '../streams/index.js'
import type { LearnerInit, SavedProgress, Sums } from './thread-messages.js'

export class StreamProgress {
  inputs: number
  /** Rows of the stream that are behind us, in this run and earlier ones. */
  position: number
  readonly score: Score
  /** What numeric columns are scaled by; undefined without scaling. */
  readonly moments: RunningMoments | undefined
  readonly #stream: string | undefined
  readonly #classifies: boolean

  constructor({ progress, stream, spec }: LearnerInit, classifies: boolean) {
    this.inputs = progress?.inputs ?? 0
    this.score = { loss: progress?.loss ?? 0, hits: progress?.hits ?? 0 }
    // A run without a stream that can be resumed leaves the place in the one before it is.
    this.#stream = streamKey(stream) ?? progress?.stream
    this.position = progress?.stream === this.#stream ? (progress?.position ?? 0) : 0
    if (spec.features.scale === 'standard') this.moments = RunningMoments.restore(progress?.moments ?? [])
    this.#classifies = classifies
  }

  /** The sums and the place, without what else a run needs to go on. */
  get sums(): Sums {
    const { loss, hits } = this.score
    const scored = { inputs: this.inputs, loss, hits: this.#classifies ? hits : undefined }
    return { ...scored, stream: this.#stream, position: this.position }
  }

  /** Plain data to go on from. */
  progress(): SavedProgress {
    return { ...this.sums, moments: this.moments?.save() }
  }
}

/** Tells streams apart: a restarted peer goes on in the stream that it was reading, but not in another one. */
function streamKey(stream: StreamOptions | undefined): string | undefined {
  if (stream === undefined || stream.data === '-') return undefined
  const { strict: _strict, passes: _passes, maxRows: _maxRows, ...rows } = stream
  return JSON.stringify(rows)
}
