/**
 * Permutation importance of columns (Breiman, "Random forests", Machine Learning 45, 2001; for any model: Fisher, Rudin and
 * Dominici, JMLR 2019): the increase of the loss when a column takes its values from other rows.
 */

import { Random, RowBuffer } from '../../data/index.js'
import { type Blocks, type Examples, type Learner, type Score, weightOf } from '../../learning/index.js'

export interface Importance {
  readonly column: string
  /** Mean increase of the loss over the repetitions, in units of the loss. */
  readonly increase: number
  /** Standard deviation of a repetition's increase. */
  readonly deviation: number
}

export interface ImportanceOptions {
  readonly learner: Learner
  readonly parameters: Blocks
  /** Labelled rows. */
  readonly rows: Examples
  /** The column of a feature; undefined for the constant feature, which is left alone. */
  columnOf(feature: number): string | undefined
  /** Number of permutations. All columns are permuted alike. */
  readonly repeats: number
  readonly seed: number
  /** Called before each column with the share that is done. */
  onProgress(share: number): void
}

/**
 * Work within which the columns of the first rows are permuted: some half a minute for five repetitions. A permuted row costs its
 * entries to copy and to score, or a network's weights, which are much faster each.
 */
const ENTRIES = 1e8
const NETWORK_WEIGHTS = 5e9
/** Fewer rows would give figures that mean nothing. */
const LEAST_ROWS = 50

/**
 * The number of the first rows whose columns can be permuted within that work. It depends on the rows and the model only.
 * @param weights number of weights of a network; undefined for a linear model
 */
export function rowsWithin({ size, offsets }: Examples, weights: number | undefined): number {
  let work = 0
  for (let row = 0; row < size; row++) {
    // A row is permuted once for each of its columns.
    const entries = offsets[row + 1] - offsets[row]
    work += weights === undefined ? entries ** 2 / ENTRIES : (entries * weights) / NETWORK_WEIGHTS
    if (work > 1 && row >= LEAST_ROWS) return row
  }
  return size
}

/** @returns the columns that occur in the rows, the largest increase first */
export function importanceOf(options: ImportanceOptions): readonly Importance[] {
  const { rows, repeats, seed } = options
  const random = new Random(seed)
  const permutations = Array.from({ length: repeats }, () => permutation(rows.size, random))
  const { columns, ofEntry } = columnsOf(options)
  const rowsWith = rowsByColumn(rows, ofEntry, columns.length)
  const shared = { loss: lossOf(options, rows), before: new RowBuffer(), after: new RowBuffer() }
  const found = columns.map((column, number) => {
    options.onProgress(number / columns.length)
    const permuted = { number, ofEntry, rowsWith: rowsWith[number] }
    const increases = permutations.map(each => increaseOf(options, permuted, each, shared))
    const mean = increases.reduce((sum, each) => sum + each, 0) / repeats
    const variance = increases.reduce((sum, each) => sum + (each - mean) ** 2, 0) / repeats
    return { column, increase: mean, deviation: Math.sqrt(variance) }
  })
  return found.sort((a, b) => b.increase - a.increase)
}

/** The mean loss of rows. */
export function lossOf({ learner, parameters }: Pick<ImportanceOptions, 'learner' | 'parameters'>, rows: Examples) {
  const score: Score = { loss: 0, hits: 0 }
  learner.score(parameters, rows, 0, rows.size, score)
  return score.loss / (sumOfWeights(rows) || 1)
}

function sumOfWeights(rows: Examples): number {
  let sum = 0
  for (let row = 0; row < rows.size; row++) sum += weightOf(rows, row)
  return sum
}

/** The columns that occur, and the number of the column of each entry of the rows, −1 for the constant feature. */
function columnsOf({ rows, columnOf }: ImportanceOptions) {
  const columns: string[] = []
  const byName = new Map<string, number>()
  const byFeature = new Map<number, number>()
  const ofEntry = new Int32Array(rows.offsets[rows.size])
  for (let i = 0; i < ofEntry.length; i++) {
    const feature = rows.indices[i]
    let number = byFeature.get(feature)
    if (number === undefined) {
      const name = columnOf(feature)
      number = name === undefined ? -1 : (byName.get(name) ?? columns.push(name) - 1)
      if (name !== undefined) byName.set(name, number)
      byFeature.set(feature, number)
    }
    ofEntry[i] = number
  }
  return { columns, ofEntry }
}

interface Permuted {
  /** The number of the column. */
  readonly number: number
  readonly ofEntry: Int32Array
  /** In ascending order. */
  readonly rowsWith: readonly number[]
}

/** For each column the rows that have it. */
function rowsByColumn(
  { size, offsets }: Examples,
  ofEntry: Int32Array,
  columns: number
): readonly (readonly number[])[] {
  const found = Array.from({ length: columns }, (): number[] => [])
  for (let row = 0; row < size; row++) {
    for (let i = offsets[row]; i < offsets[row + 1]; i++) {
      const rows = found[ofEntry[i]]
      if (rows !== undefined && rows.at(-1) !== row) rows.push(row)
    }
  }
  return found
}

/** From which row each row takes a column, and the inverse. */
interface Permutation {
  readonly donors: Int32Array
  readonly recipients: Int32Array
}

/** What the columns share. */
interface Shared {
  /** Mean loss of all rows. */
  readonly loss: number
  /** The rows that change, in memory that is allocated once. */
  readonly before: RowBuffer
  readonly after: RowBuffer
}

/** Of the mean loss, if each row takes a column from its donor. */
function increaseOf(
  options: ImportanceOptions,
  permuted: Permuted,
  { donors, recipients }: Permutation,
  { loss, before, after }: Shared
): number {
  const { rows } = options
  const { rowsWith } = permuted
  // Only rows that lose or gain an entry change, which makes columns of sparse rows cheap.
  const changing = new Set(rowsWith)
  for (const row of rowsWith) changing.add(recipients[row])
  for (const buffer of [before, after]) {
    buffer.size = 0
    buffer.entries = 0
  }
  const areAll = changing.size === rows.size
  for (const row of changing) {
    if (!areAll) before.append(rows, row)
    appendMixed(rows, row, donors[row], permuted, after)
  }
  if (after.size === 0) return 0
  const change = lossOf(options, after.view()) - (areAll ? loss : lossOf(options, before.view()))
  return (change * sumOfWeights(after.view())) / (sumOfWeights(rows) || 1)
}

/** Appends a row that takes a column from another one. */
function appendMixed(rows: Examples, row: number, donor: number, permuted: Permuted, out: RowBuffer): void {
  const { offsets, indices, values, labels } = rows
  const { number, ofEntry } = permuted
  out.reserve(1, offsets[row + 1] - offsets[row] + offsets[donor + 1] - offsets[donor])
  const { indices: toIndices, values: toValues } = out
  let end = out.entries
  for (let i = offsets[row]; i < offsets[row + 1]; i++) {
    if (ofEntry[i] === number) continue
    toIndices[end] = indices[i]
    toValues[end++] = values[i]
  }
  for (let i = offsets[donor]; i < offsets[donor + 1]; i++) {
    if (ofEntry[i] !== number) continue
    toIndices[end] = indices[i]
    toValues[end++] = values[i]
  }
  out.entries = end
  out.weigh(weightOf(rows, row))
  out.labels[out.size] = labels[row]
  out.offsets[++out.size] = out.entries
}

/** A uniform permutation (Fisher and Yates). */
function permutation(size: number, random: Random): Permutation {
  const found = Int32Array.from({ length: size }, (_, i) => i)
  for (let i = size - 1; i > 0; i--) {
    const j = random.below(i + 1)
    const kept = found[i]
    found[i] = found[j]
    found[j] = kept
  }
  const recipients = new Int32Array(size)
  for (let row = 0; row < size; row++) recipients[found[row]] = row
  return { donors: found, recipients }
}
