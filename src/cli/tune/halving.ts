/**
 * Successive halving (Jamieson and Talwalkar, AISTATS 2016; here by thirds, as in Hyperband, Li et al., JMLR 2018): all candidates learn a
 * short prefix of the stream, and the best third of each round a longer one, up to three times as long. Each run starts at the first row,
 * so that a loss depends only on the candidate and the number of rows.
 */
import { type Examples, weightOf } from '../../learning/index.js'

/** Candidates that remain from one round to the next: one in this many. */
const SHARE = 3
/** Candidates in the last round, at least. */
const FINALISTS = 3
/** Rows of a round, at least: shorter prefixes only show how fast a candidate starts. */
export const LEAST_ROWS = 1000

export interface Round {
  /** Number of candidates. */
  readonly candidates: number
  /** Length of the prefix, in rows. */
  readonly rows: number
}

/**
 * The rounds for a number of candidates: the last prefix is as long as the budget allows, and if that is the whole stream, the
 * earlier ones as well.
 * @param rows length of the stream; Infinity if it is not known
 * @param budget limit of the rows that all candidates learn together
 */
export function roundsFor(candidates: number, rows: number, budget: number): readonly Round[] {
  const counts = [candidates]
  for (let left = candidates; left > FINALISTS; ) {
    left = Math.max(FINALISTS, Math.ceil(left / SHARE))
    counts.push(left)
  }
  const last = counts.length - 1
  const roundsTo = (longest: number, growth: number): readonly Round[] =>
    counts.map((count, round) => {
      const share = Math.ceil(longest / growth ** (last - round))
      return { candidates: count, rows: Math.min(longest, Math.max(LEAST_ROWS, share)) }
    })
  const isAffordable = (rounds: readonly Round[]) => costOf(rounds) <= budget
  if (Number.isFinite(rows)) {
    for (let tenths = 10; tenths <= 10 * SHARE; tenths++) {
      const rounds = roundsTo(rows, tenths / 10)
      if (isAffordable(rounds)) return rounds
    }
  }
  let [low, high] = [1, Math.min(rows, budget)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (isAffordable(roundsTo(middle, SHARE))) low = middle
    else high = middle - 1
  }
  return roundsTo(low, SHARE)
}

/** Rows that all candidates learn together. The first candidate takes part in each round, by an extra run if necessary. */
function costOf(rounds: readonly Round[]): number {
  return rounds.reduce((sum, { candidates, rows }, round) => sum + (candidates + Math.min(round, 1)) * rows, 0)
}

/** The result of a candidate's last round. */
export interface Ranked<Result> {
  /** Index of the candidate. */
  readonly candidate: number
  readonly rows: number
  readonly result: Result
}

export interface HalvingOptions<Result extends { readonly loss: number }> {
  readonly rounds: readonly Round[]
  /** Results of these candidates on a prefix, in the same order. */
  evaluate(candidates: readonly number[], rows: number): Promise<readonly Result[]>
}

/**
 * @returns the candidates of later rounds first, within a round by loss; and the result of the first candidate in the last
 * round, for comparison
 */
export async function halve<Result extends { readonly loss: number }>({
  rounds,
  evaluate
}: HalvingOptions<Result>): Promise<{ readonly ranked: readonly Ranked<Result>[]; readonly first: Ranked<Result> }> {
  let left = Array.from({ length: rounds[0].candidates }, (_, candidate) => candidate)
  let ranked: readonly Ranked<Result>[] = []
  let first: Ranked<Result> | undefined
  for (const { candidates, rows } of rounds) {
    const eliminated = ranked.slice(candidates)
    if (ranked.length > 0) left = ranked.slice(0, candidates).map(({ candidate }) => candidate)
    const asked = left.includes(0) ? left : [...left, 0]
    const results = await evaluate(asked, rows)
    const now = asked.map((candidate, i) => ({ candidate, rows, result: results[i] }))
    first = now.find(({ candidate }) => candidate === 0)
    // Sorting is stable, so that equal losses keep the order of the candidates.
    const survivors = now.filter(({ candidate }) => left.includes(candidate)).sort((a, b) => lossOrder(a, b))
    ranked = [...survivors, ...eliminated]
  }
  if (first === undefined) throw new Error('there is at least one round')
  return { ranked, first }
}

function lossOrder<Result extends { readonly loss: number }>(a: Ranked<Result>, b: Ranked<Result>): number {
  // The difference of two infinite losses is not a number.
  return a.result.loss === b.result.loss ? a.candidate - b.candidate : a.result.loss - b.result.loss
}

/** Options of `admb tune` that `admb train` does not have, or that it found; the last ones take no value. */
const LEFT_OUT = ['--budget', '--candidates', '--threads', '--top', '--out', '--rule', '--average', '--batch']
const WITHOUT_VALUE = ['--json']

/**
 * @param given words of the command line, from the command's name
 * @param found words to add
 */
export function commandLine(given: readonly string[], found: readonly string[]): string {
  const kept: string[] = []
  for (let i = 1; i < given.length; i++) {
    const word = given[i]
    if (WITHOUT_VALUE.includes(word) || LEFT_OUT.some(option => word.startsWith(`${option}=`))) continue
    if (LEFT_OUT.includes(word)) i++
    else kept.push(word)
  }
  return ['admb', 'train', ...kept, ...found].map(quoted).join(' ')
}

/** Quotes a word for a POSIX shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/** Rows, and the number of features that they have. */
export interface SharedRows extends Examples {
  readonly dimension: number
}

/**
 * Copies labelled rows into shared memory. Their features are numbered by first appearance: the weights of features that do not
 * occur stay zero, so the losses are the same, and rules that step all weights take less time.
 */
export function sharedRows({ size, labels, offsets, indices, values, weights }: Examples): SharedRows {
  const entries = offsets[size]
  const shared = {
    size: 0,
    labels: new Float64Array(new SharedArrayBuffer(8 * size)),
    offsets: new Int32Array(new SharedArrayBuffer(4 * (size + 1))),
    indices: new Int32Array(new SharedArrayBuffer(4 * entries)),
    values: new Float32Array(new SharedArrayBuffer(4 * entries)),
    ...(weights && { weights: new Float32Array(new SharedArrayBuffer(4 * size)) })
  }
  const numbers = new Map<number, number>()
  let end = 0
  for (let row = 0; row < size; row++) {
    if (Number.isNaN(labels[row])) continue
    for (let i = offsets[row]; i < offsets[row + 1]; i++) {
      let number = numbers.get(indices[i])
      if (number === undefined) {
        number = numbers.size
        numbers.set(indices[i], number)
      }
      shared.indices[end] = number
      shared.values[end++] = values[i]
    }
    if (shared.weights !== undefined) shared.weights[shared.size] = weightOf({ weights }, row)
    shared.labels[shared.size++] = labels[row]
    shared.offsets[shared.size] = end
  }
  return { ...shared, dimension: Math.max(1, numbers.size) }
}
