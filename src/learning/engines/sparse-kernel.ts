/**
 * The loop of `SparseScalarEngine` for built-in losses in WebAssembly, with the same bits in every cell. It learns plain rows: usual
 * labels, known features, and scores of which no exponential overflows. It stops at any other row, which the loop
 * in TypeScript learns.
 */

import { fractions } from '../../numeric/exp.js'
import { withGrowingMemory } from '../../numeric/wasm-memory.js'
import type { ScalarLoss, TargetScale } from '../models/losses.js'
import { AGREEMENT } from '../rules/adagrad.js'
import type { Examples } from '../types.js'
import {
  AT,
  CELLS,
  ENTRIES,
  FEATURES,
  FRACTIONS,
  GROUPS,
  INDICES,
  LABELS,
  learnRows,
  OFFSETS,
  ROWS,
  VALUES,
  WEIGHTS
} from './kernel-code.js'
import { type KernelLoss, kernelLossOf } from './kernel-losses.js'
import { CELL } from './sparse-engine.js'

/** What both loops change. */
interface LoopState {
  readonly retention: number
  readonly updates: number
  /** As `agreementBlock`. */
  readonly agreement: Float64Array
  /** Total loss. */
  readonly loss: number
}

interface KernelOptions {
  readonly step: number
  readonly growth: number
  readonly initial: number
  readonly forget: number
  /** Above 0. */
  readonly maxForget: number
  /** Whether the average has the least weight that the rule asks for. */
  readonly isFollowing: boolean
  readonly servesAverage: boolean
  /** @default the target is not standardised */
  readonly targetScale?: TargetScale | undefined
}

/** What a call has learned. */
export interface Learned {
  /** The row at which the kernel stopped. */
  readonly row: number
  /** Number of rows. */
  readonly count: number
  readonly retention: number
  readonly hits: number
  /** Total loss, with that before. */
  readonly loss: number
  readonly highest: number
  /** Label and score of each row, void after the next call. */
  readonly entries: Float64Array
}

/** The kernel, its cells, and the rows that it learns. */
export class SparseKernel {
  readonly #loss: KernelLoss
  readonly #memory
  /** Number of cells. */
  #length = 0
  #views: ReturnType<typeof viewsOf>
  readonly #options: KernelOptions
  /** Rows [from, end) are in memory. */
  #from = 0
  /** Number of updates at the first of them. */
  #updates = 0

  /** @param loss one of `scalarLosses`, or a standardised squared error */
  constructor(loss: ScalarLoss, options: KernelOptions) {
    this.#options = options
    this.#loss = kernelLossOf(loss)
    this.#memory = withGrowingMemory([learnRows(this.#loss)], CELLS)
    this.#views = viewsOf(this.#memory.buffer)
  }

  /** The cells, which keep their numbers. @throws RangeError if there is no room */
  cells(length: number): Float64Array<ArrayBuffer> {
    if (!this.#memory.growTo(CELLS + 8 * length)) throw new RangeError(`no memory for ${length} numbers`)
    this.#length = length
    const { buffer } = this.#memory
    this.#views = viewsOf(buffer)
    const { state, constants } = this.#views
    constants.set(fractions)
    const { step, growth, initial, forget, maxForget, isFollowing, servesAverage } = this.#options
    const { targetScale = { mean: 0, deviation: 1 } } = this.#options
    const following = isFollowing ? AGREEMENT.maxWeight : 0
    state.set([step, growth, initial, maxForget, 1 - forget, following, Number(servesAverage)], AT.step / 8)
    state.set([targetScale.mean, targetScale.deviation], AT.mean / 8)
    return new Float64Array(buffer, CELLS, length)
  }

  /**
   * Takes rows from `from` on, at most those before `end`.
   * @param weightAt weight of a predictor in the average by the number of updates before, if the rule asks for none
   * @returns the end of the rows taken
   */
  take(examples: Examples, from: number, end: number, updates: number, weightAt: (updates: number) => number): number {
    const { labels, offsets, indices, values } = examples
    // Copies from memory that threads share are several times slower if only one side is aligned to 8 bytes.
    const base = offsets[from] & ~1
    let until = Math.min(end, from + ROWS)
    while (offsets[until] - base > FEATURES) until = from + ((until - from) >> 1)
    const views = this.#views
    views.labels.set(labels.subarray(from, until))
    views.indices.set(indices.subarray(base, offsets[until]))
    views.values.set(values.subarray(base, offsets[until]))
    for (let row = from; row <= until; row++) views.offsets[row - from] = offsets[row] - base
    for (let row = from; row < until; row++) views.weights[row - from] = weightAt(updates + row - from)
    this.#from = from
    this.#updates = updates
    views.state[AT.losses / 8] = this.#loss.none
    return until
  }

  /** The loss of rows that `learn` has not reported yet: it reports those of 16 rows together. */
  rest(): number {
    const { state } = this.#views
    const rest = this.#loss.total(state[AT.losses / 8])
    state[AT.losses / 8] = this.#loss.none
    return rest
  }

  /** Learns rows [start, end), which it has taken, until one of them is not plain. */
  learn(start: number, end: number, { retention, updates, agreement, ...before }: LoopState): Learned {
    const { state, integers, entries, groups } = this.#views
    state[AT.retention / 8] = retention
    state.set(agreement, AT.agreeing / 8)
    integers[AT.start / 4] = start - this.#from
    integers[AT.end / 4] = end - this.#from
    integers[AT.most / 4] = this.#length / CELL - 1
    integers[AT.phase / 4] = updates % AGREEMENT.singles
    integers[AT.first / 4] = updates - this.#updates
    this.#memory.kernels.learn()
    agreement.set(state.subarray(AT.agreeing / 8, AT.agreeing / 8 + agreement.length))
    let { loss } = before
    for (let group = 0; group < integers[AT.groups / 4]; group++) loss += this.#loss.total(groups[group])
    return {
      row: this.#from + integers[AT.row / 4],
      count: integers[AT.learned / 4],
      retention: state[AT.retention / 8],
      hits: state[AT.hits / 8],
      loss,
      highest: integers[AT.highest / 4],
      entries
    }
  }
}

function viewsOf(buffer: ArrayBuffer) {
  return {
    state: new Float64Array(buffer, 0, FRACTIONS / 8),
    integers: new Int32Array(buffer, 0, FRACTIONS / 4),
    constants: new Float64Array(buffer, FRACTIONS, fractions.length),
    weights: new Float64Array(buffer, WEIGHTS, ROWS),
    entries: new Float64Array(buffer, ENTRIES, 2 * ROWS),
    groups: new Float64Array(buffer, GROUPS, ROWS + 1),
    labels: new Float32Array(buffer, LABELS, ROWS),
    offsets: new Int32Array(buffer, OFFSETS, ROWS + 1),
    indices: new Int32Array(buffer, INDICES, FEATURES),
    values: new Float32Array(buffer, VALUES, FEATURES)
  }
}
