/** Commits of a run of `admb train --store disk` to the layer file of its directory. */
import type { PredictorId } from '../../admb/index.js'
import type { SerialReport, Trained } from '../../learning/index.js'
import type { SavedProgress } from '../../peer/thread-messages.js'
import { layersFolder, type Store } from '../../storage/index.js'
import { recipeOf } from '../../task/learning-parts.js'
import type { LearningSpec } from '../../task/learning-spec.js'
import type { TrainedLayers } from '../../task/training-job.js'
import { formatNumber } from '../output/output.js'
import { reportSince } from './continuation.js'
import type { LayeredContent } from './layered.js'
import { beginRun, EndedEarlyError, progressAfter, type StreamState } from './trained-store.js'

/** Least milliseconds between two commits. */
const COMMIT_MS = 1000

export interface LayeredRunOptions {
  readonly layers: TrainedLayers
  readonly store: Store
  readonly spec: LearningSpec
  /** At the start of the run. */
  readonly before: SerialReport
  /** Progress of the runs before. */
  readonly earlier: SavedProgress | undefined
}

export class LayeredRun {
  readonly #options: LayeredRunOptions
  readonly #run: Pick<PredictorId, 'origin' | 'incarnation' | 'nonce'>
  #lastMs = Number.NEGATIVE_INFINITY
  #hasFailed = false

  private constructor(options: LayeredRunOptions, run: Pick<PredictorId, 'origin' | 'incarnation' | 'nonce'>) {
    this.#options = options
    this.#run = run
  }

  /** @throws errors of the store */
  static async start(options: LayeredRunOptions): Promise<LayeredRun> {
    return new LayeredRun(options, await beginRun(options.store, options.spec))
  }

  /** Whether a commit has failed. The last one before it is intact. */
  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /** Commits what was learned, unless the last commit was just before. @throws LayersWriteError, DivergenceError */
  note(report: SerialReport, stream: () => StreamState): void {
    if (performance.now() - this.#lastMs < COMMIT_MS) return
    try {
      this.#options.layers.commit(this.#contentOf(report, stream()))
    } catch (error) {
      this.#hasFailed = true
      throw error
    }
    this.#lastMs = performance.now()
  }

  /** The last commit. @returns the id of the predictor */
  end({ parameters, average, state }: Trained, report: SerialReport, stream: StreamState): PredictorId {
    const { layers, spec } = this.#options
    const digest = recipeOf(spec).digest([parameters, average, state])
    const content = { ...this.#contentOf(report, stream), digest }
    layers.close(content)
    const { updates, origin, incarnation, nonce } = content
    return { updates, origin, incarnation, nonce, digest }
  }

  /** Ends a run within a step, or whose last commit has failed. @returns the error with what is stored */
  async interrupted(error: Error, dir: string, continues: boolean): Promise<Error> {
    this.#options.layers.abandon()
    const { storedLayers } = await import('../../l2l/index.js')
    const stored = storedLayers(layersFolder(dir))?.commit.content as LayeredContent | undefined
    if (stored === undefined) return new EndedEarlyError(error, 'nothing is stored')
    const more = continues ? ', and the same command continues from it' : ''
    return new EndedEarlyError(error, `the last commit (${formatNumber(stored.updates)} updates) is in ${dir}${more}`)
  }

  #contentOf(report: SerialReport, stream: StreamState): LayeredContent {
    const { before, earlier, spec } = this.#options
    const progress = progressAfter(reportSince(before, report), stream, earlier)
    return { updates: report.updates, ...this.#run, dimension: spec.dimension, progress }
  }
}
