/**
 * Validation of `admb train`: after each pass the predictor is scored on rows that are never learned. The best predictor is kept,
 * and training ends when it has not improved for some passes.
 */

import { openStream, RowBuffer, type RunningMoments, type SavedMoments, type StreamOptions } from '../../data/index.js'
import type { Execution } from '../../l2l/index.js'
import {
  type Examples,
  type Figures,
  learnerAfter,
  type PredictWith,
  ProgressiveMetrics,
  type Score,
  type Trained
} from '../../learning/index.js'
import { learningParts, readableSpec, scoringExecution } from '../../task/learning-parts.js'
import type { LearningSpec } from '../../task/learning-spec.js'
import { UsageError } from '../errors.js'

export interface ValidationOptions {
  /** The rows, for a model of this spec. */
  readonly streamFor: (spec: LearningSpec) => Promise<StreamOptions>
  readonly execution: Execution
  readonly predictWith: PredictWith
  /** Passes without improvement after which training ends. */
  readonly patience: number
  /** Moments of the rows learned so far. */
  readonly moments: RunningMoments
}

/** What `--json` prints. */
export interface ValidationReport {
  /** Number of passes over the data. */
  readonly passes: number
  /** Pass after which the predictor was best, from 1. */
  readonly best: number
  /** Figures of that predictor on the validation rows. */
  readonly metrics: Figures
  /** Loss after each pass. */
  readonly losses: readonly number[]
}

interface Best {
  readonly pass: number
  readonly trained: Trained
  readonly metrics: Figures
  readonly moments: SavedMoments
}

export class Validation {
  readonly #options: ValidationOptions
  readonly #losses: number[] = []
  #best: Best | undefined

  constructor(options: ValidationOptions) {
    this.#options = options
  }

  /**
   * Scores the predictor after a pass.
   * @param spec for the predictor
   * @returns its figures, and whether it may still improve
   * @throws UsageError if there are no validation rows; errors of the stream
   */
  async add(trained: Trained, spec: LearningSpec): Promise<{ readonly metrics: Figures; readonly continues: boolean }> {
    const metrics = await this.#score(trained, spec)
    this.#losses.push(metrics.loss)
    const pass = this.#losses.length
    if (this.#best === undefined || metrics.loss < this.#best.metrics.loss)
      this.#best = { pass, trained, metrics, moments: this.#options.moments.save() }
    return { metrics, continues: pass - this.#best.pass < this.#options.patience }
  }

  /** The best predictor; undefined before the first pass has ended. */
  get trained(): Trained | undefined {
    return this.#best?.trained
  }

  /** The moments that it was scored with. */
  get moments(): SavedMoments | undefined {
    return this.#best?.moments
  }

  get report(): ValidationReport | undefined {
    if (this.#best === undefined) return undefined
    return { passes: this.#losses.length, best: this.#best.pass, metrics: this.#best.metrics, losses: this.#losses }
  }

  async #score({ parameters, average, updates }: Trained, spec: LearningSpec): Promise<Figures> {
    const { streamFor, execution, predictWith, moments } = this.#options
    const stream = await streamFor(readableSpec(spec, parameters))
    const parts = await learningParts(spec, scoringExecution(execution))
    const learner = learnerAfter(parts.learner, updates)
    const outcomes = learner.outcomeKind && new ProgressiveMetrics(learner.outcomeKind)
    const score: Score = { loss: 0, hits: 0, outcomes }
    const serving = predictWith === 'average' ? average : parameters
    const buffer = new RowBuffer()
    let inputs = 0
    for await (const rows of await openStream({ ...stream, scaling: { moments, frozen: true } })) {
      const known = knownOf(rows, spec.dimension, buffer)
      learner.score(serving, known, 0, known.size, score)
      inputs += known.size
    }
    if (inputs === 0) throw new UsageError(`${stream.data} has no rows for validation: give more data, or another file`)
    const weight = inputs + (score.surplus ?? 0)
    const loss = weight > 0 ? score.loss / weight : 0
    return outcomes?.metrics(score.loss).total ?? { inputs, loss }
  }
}

/** Labelled rows without the features that the model has not seen, whose weights would be 0. */
function knownOf(rows: Examples, dimension: number, out: RowBuffer): Examples {
  out.clear()
  for (let row = 0; row < rows.size; row++) {
    if (Number.isNaN(rows.labels[row])) continue
    out.append(rows, row)
    const end = out.entries
    out.entries = out.offsets[out.size - 1]
    for (let at = out.entries; at < end; at++) {
      if (out.indices[at] >= dimension) continue
      out.indices[out.entries] = out.indices[at]
      out.values[out.entries++] = out.values[at]
    }
    out.offsets[out.size] = out.entries
  }
  return out.view()
}
