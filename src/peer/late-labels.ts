/**
 * Predictions that wait for their label. A label may arrive long after its input was predicted: the input is then learned, and the
 * progressive loss counts the prediction that was given, not one of the present predictor.
 */
import { CodedError } from '../base/errors.js'
import type { Rows } from '../data/parsing.js'
import {
  type Blocks,
  type Examples,
  type Learner,
  OUTCOME_ROWS,
  type Prediction,
  type Score,
  weightOf
} from '../learning/index.js'

/** Limits of what is kept, beyond which the oldest predictions are dropped. */
const MAX_PREDICTIONS = 200_000
const MAX_ENTRIES = 2 ** 24

/** The label came too late, or its id is unknown. */
export class LateLabelError extends CodedError {
  static override readonly code = 'ERR_LABEL_LATE'
}

/** A prediction that was given, with the input as it was before scaling. */
export interface GivenPrediction {
  readonly rows: Rows
  readonly prediction: Prediction
  /** w·x of a model with one score. */
  readonly score?: number
}

export class LateLabels {
  readonly #delay: number
  readonly #run: number
  readonly #now: () => number
  readonly #waiting = new Map<number, GivenPrediction & { readonly since: number }>()
  #next = 1
  #entries = 0

  /**
   * @param delay time for which predictions are kept, in milliseconds
   * @param run number of this run, so that ids of earlier runs are recognised
   */
  constructor(delay: number, run: number, now: () => number) {
    this.#delay = delay
    this.#run = run
    this.#now = now
  }

  /** @returns the id for the label */
  keep(given: GivenPrediction): string {
    this.#waiting.set(this.#next, { ...given, since: this.#now() })
    this.#entries += given.rows.offsets[1]
    this.#drop()
    return `${this.#run}-${this.#next++}`
  }

  /** Removes the prediction with that id. @throws LateLabelError if it does not wait any more */
  take(id: string): GivenPrediction {
    this.#drop()
    const [, run, number] = /^(\d+)-(\d+)$/.exec(id) ?? []
    if (run === undefined || Number(run) > this.#run || (Number(run) === this.#run && Number(number) >= this.#next)) {
      throw new LateLabelError(`no prediction has the id ${id.slice(0, 40)}: send the id that POST /predict returned`)
    }
    if (Number(run) < this.#run) {
      throw new LateLabelError(
        `the prediction ${id} was given before this peer restarted: send the whole input with its label`
      )
    }
    const given = this.#waiting.get(Number(number))
    if (given === undefined) {
      throw new LateLabelError(
        `the prediction ${id} has its label, or its time is over: send the whole input, or increase --label-delay`
      )
    }
    this.#remove(Number(number), given)
    return given
  }

  /** Drops predictions whose time is over, and the oldest ones above the limits. */
  #drop(): void {
    const oldest = this.#now() - this.#delay
    for (const [number, given] of this.#waiting) {
      const isFull = this.#waiting.size > MAX_PREDICTIONS || this.#entries > MAX_ENTRIES
      if (given.since >= oldest && !isFull) return
      this.#remove(number, given)
    }
  }

  #remove(number: number, { rows }: GivenPrediction): void {
    this.#waiting.delete(number)
    this.#entries -= rows.offsets[1]
  }
}

/** A copy of one row. */
export function rowCopy(rows: Rows, row: number): Rows {
  const { labels, numeric, offsets, indices, values, weights, ids, newClasses } = rows
  const [from, to] = [offsets[row], offsets[row + 1]]
  return {
    size: 1,
    labels: Float64Array.of(labels[row]),
    numeric: Int32Array.of(numeric[row]),
    offsets: Int32Array.of(0, to - from),
    indices: indices.slice(from, to),
    values: values.slice(from, to),
    weights: weights && Float32Array.of(weights[row]),
    ids: ids && [ids[row]],
    newClasses
  }
}

/** w·x of a row, for models with one score. */
export function oneScore(learner: Learner, parameters: Blocks, rows: Examples, row: number): number | undefined {
  if (learner.outcomeKind === undefined || !('loss' in learner.outcomeKind)) return undefined
  const { indices, values, offsets } = rows
  const outcomes = { entries: new Float64Array(2 * OUTCOME_ROWS), commit: () => undefined }
  const one = { size: 1, labels: new Float64Array(1), offsets: offsets.subarray(row), indices, values }
  learner.score(parameters, one, 0, 1, { loss: 0, hits: 0, outcomes })
  return outcomes.entries[1]
}

/** Adds the loss of a prediction that was given, and its outcome. */
export function scoreGiven(
  { rows, prediction, score }: GivenPrediction,
  label: number,
  learner: Learner,
  into: Score
): void {
  const { outcomeKind: kind, classifies } = learner
  const { entries } = into.outcomes ?? { entries: new Float64Array(4 * OUTCOME_ROWS) }
  const isHit = classifies && prediction.label === label
  const weight = weightOf(rows, 0)
  let loss: number
  if (kind !== undefined && 'loss' in kind && score !== undefined) {
    loss = kind.loss.value(score, label)
    entries[0] = label
    entries[1] = score
  } else {
    // The least positive float32 number bounds the loss of a probability that was rounded to 0.
    const { scores } = prediction
    loss = classifies ? -Math.log(Math.max(scores[label], 2 ** -149)) : 0.5 * (prediction.label - label) ** 2
    if (kind?.kind === 'classes') entries.set([label, prediction.label, scores[prediction.label], loss])
    else entries.set([loss, isHit ? 1 : 0])
  }
  into.loss += weight * loss
  if (isHit) into.hits += weight
  into.surplus = (into.surplus ?? 0) + weight - 1
  into.outcomes?.commit(1, weight)
}
