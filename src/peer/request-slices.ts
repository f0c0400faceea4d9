/** Predicts the rows of requests, or predicts and then learns them, in slices between which the learner thread handles messages. */
import type { Rows } from '../data/index.js'
import type { InputAnswer, Prediction } from './answers.js'
import { ChunkSize } from './chunk-size.js'
import { PartlyLearnedError, PrivacySpentError, UnavailableError } from './errors.js'
import type { KeyProgress } from './learned-keys.js'
import { type LearnerContext, SLICE_MS } from './learner-context.js'

export class RequestSlices {
  readonly #context: LearnerContext
  readonly #chunk = new ChunkSize()

  constructor(context: LearnerContext) {
    this.#context = context
  }

  /** A request with a key begins, of which some inputs may have been learned before. */
  begin(key: string): KeyProgress {
    return this.#context.keys.begin(key)
  }

  /** All inputs of a request with a key are learned. */
  end(progress: KeyProgress): void {
    progress.end()
    this.#acknowledge()
  }

  /** All rows of a request at once. @throws as `slices` */
  answer(rows: Rows, learn: boolean, progress?: KeyProgress): InputAnswer {
    const predictions = [...this.slices(rows, learn, progress, false)].flat()
    return { predictions, predictor: this.#context.node.predictor.id }
  }

  /**
   * @param progress of a request to learn with a key, whose first inputs may have been learned before; they are only predicted
   * @param waits whether there are empty slices until the node takes inputs
   * @returns the predictions of each slice
   * @throws UnavailableError if the peer stops before the last one, PartlyLearnedError if some rows are learned then; PrivacySpentError if the budget of
   *   differential privacy is spent
   */
  *slices(rows: Rows, learn: boolean, progress?: KeyProgress, waits = true): Generator<readonly Prediction[]> {
    const { node, now, flush, isStopping } = this.#context
    const chunk = this.#chunk
    const from = learn ? Math.min(rows.size, progress?.from ?? 0) : rows.size
    if (from < rows.size) this.#begin()
    const parts = this.#parts(rows, from, !learn)
    // With DMB, the node takes no inputs for some time.
    const isFull = () => from < rows.size && node.room === 0 && !isStopping()
    if (waits) while (isFull()) yield []
    let slice: Prediction[] = []
    let learned = 0
    let [begin, until] = [now(), now() + SLICE_MS]
    for (const predictions of parts) {
      slice.push(...predictions)
      if (progress !== undefined && learned + slice.length > from) progress.learned(learned + slice.length)
      const end = now()
      if (!learn) chunk.took(predictions.length, end - begin)
      begin = end
      if (end < until && !(waits && isFull())) continue
      flush()
      yield slice
      learned += slice.length
      if (isStopping()) {
        if (!learn) throw new UnavailableError('the peer is stopping')
        this.#acknowledge()
        throw new PartlyLearnedError(Math.max(learned, from))
      }
      slice = []
      if (waits) while (isFull()) yield []
      begin = now()
      until = begin + SLICE_MS
    }
    flush()
    if (learn) this.#acknowledge()
    yield slice
  }

  /** Predicts the rows before `from`, then predicts and learns the others. @param isAsked whether only predictions are requested */
  *#parts(rows: Rows, from: number, isAsked: boolean): Generator<readonly Prediction[]> {
    const { training } = this.#context
    if (from > 0) yield* training.predict(rows, () => this.#chunk.rows, from, isAsked)
    if (from < rows.size) yield* training.predictAndLearn(rows, from)
  }

  /** Learns an input that was predicted before. @throws LateLabelError, ExampleError, and as `slices` */
  learnLate(id: string, label: number, onLearned: () => void): Prediction {
    this.#begin()
    const answer = this.#context.training.learnLate(id, label)
    onLearned()
    this.#context.flush()
    this.#acknowledge()
    return answer
  }

  #begin(): void {
    const { budget, isStopping } = this.#context
    if (isStopping()) throw new UnavailableError('the peer is stopping')
    if (budget?.isExhausted) {
      throw new PrivacySpentError()
    }
    budget?.addRequest()
  }

  /** Makes inputs durable before they are acknowledged. */
  #acknowledge(): void {
    const inputs = this.#context.inputs?.acknowledge()
    const keys = this.#context.keys.take()
    if (inputs || keys) this.#context.post({ kind: 'journal', records: [], pending: [], ...inputs, keys })
  }
}
