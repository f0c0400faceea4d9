/** Test-then-train of linear models in this process, for `admb regret`, `admb tune` and the simulator's file streams, which are kept in memory. */
import { type ExampleStream, openStream, RowBuffer, RunningMoments } from '../../data/index.js'
import { type Examples, modelNames, type SerialOptions } from '../../learning/index.js'
import type { LinearSpec } from '../../task/learning-spec.js'
import { noData } from '../../task/stream.js'
import { createTask } from '../../task/task.js'
import { UsageError } from '../errors.js'
import { taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { SkippedInputs } from '../output/malformed.js'

export interface Learning {
  readonly stream: ExampleStream
  /** For a `SerialTrainer`. */
  readonly options: SerialOptions & { readonly batch: number }
  /** The running moments of `--scale standard`. */
  readonly moments: RunningMoments
  /** Malformed inputs so far. */
  readonly skipped: SkippedInputs
}

const HINDSIGHT = 'the best predictor in hindsight is known only'

/**
 * @param why beginning of the message about models that are not linear
 * @throws OptionError, UsageError; errors of the stream
 */
export async function openLearning(flags: Flags<'regret' | 'tune'>, why = HINDSIGHT): Promise<Learning> {
  const { model, stream: source, specFor } = await createTask(taskOptions(flags), 'serial')
  if (model !== undefined && model.kind !== 'linear') {
    throw new UsageError(`${why} for the models ${modelNames.join(', ')}`)
  }
  if (source === undefined) throw noData()
  const moments = new RunningMoments()
  const skipped = new SkippedInputs(flags.shard)
  // New classes need room, which these models do not have.
  const { classesMax: _classesMax, ...known } = source
  const stream = await openStream({ ...known, scaling: { moments, frozen: false }, onMalformed: skipped.add })
  const spec = specFor(stream) as Omit<LinearSpec, 'dimension'> & { readonly dimension: number | undefined }
  return { stream, options: { ...spec, predictWith: flags.predictWith }, moments, skipped }
}

/** Features of all rows together, at eight bytes each. */
const MOST_FEATURES = 2 ** 27

export class Recorder {
  readonly #data: string
  readonly #rows = new RowBuffer()

  /** @param data the name in errors */
  constructor(data: string) {
    this.#data = data
  }

  /** Copies all rows. @throws UsageError if they have weights, or do not fit into memory */
  append(rows: Examples): void {
    if (rows.weights !== undefined) {
      throw new UsageError(
        `${this.#data} has weights of inputs, which regret and simulations do not take: remove the option weight`
      )
    }
    for (let row = 0; row < rows.size; row++) this.#rows.append(rows, row)
    if (this.#rows.entries > MOST_FEATURES) {
      throw new UsageError(
        `${this.#data} does not fit into memory: its first ${this.#rows.size} inputs have ${this.#rows.entries} features, the limit is ${MOST_FEATURES}: give --limit N`
      )
    }
  }

  /** Rows so far. */
  get size(): number {
    return this.#rows.size
  }

  /** All rows so far; no more may be appended. */
  get examples(): Examples {
    const { size, labels, offsets, indices, values } = this.#rows.view()
    return { size, labels, offsets, indices, values }
  }
}
