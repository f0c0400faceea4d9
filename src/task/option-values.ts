/**
 * Values of the options `batch` (a number, a range in which the peers choose b themselves, or `auto`) and `classWeights`
 * (factors of the gradients of inputs, for classes that are rare or matter more).
 */

import type { LabelSchema } from '../data/index.js'
import { type BatchRange, OptionError } from '../learning/index.js'

/** The option: a number, MIN..MAX, or `auto`. */
export type BatchOption = number | `${number}..${number}` | 'auto'

/** The range of `auto`. */
const AUTO_BATCH: BatchRange = { min: 32, max: 4096 }
/** The largest b of a range: a count of gradients up to it is exact in float32. */
const MAX_RANGE = 2 ** 20
/** The largest fixed b: a peer accepts sums of eight times as many gradients. */
const MAX_BATCH = 2 ** 37

/** Least and largest b; the same number if b is fixed. @throws OptionError */
export function batchRange(batch: BatchOption): BatchRange {
  if (batch === 'auto') return AUTO_BATCH
  const [min, max = min, ...rest] = String(batch).split('..').map(Number)
  if (rest.length > 0 || !(Number.isSafeInteger(min) && min >= 1)) {
    throw new OptionError(`batch must be a whole number of gradients, at least 1, MIN..MAX or auto, not ${batch}`)
  }
  if (min > MAX_BATCH) throw new OptionError(`batch must be at most ${MAX_BATCH}, not ${batch}`)
  if (max === min) return { min, max }
  if (!Number.isSafeInteger(max) || max < min || max > MAX_RANGE) {
    throw new OptionError(`batch ${batch}: the range must be ascending, and end at ${MAX_RANGE} or less`)
  }
  return { min, max }
}

/** `balanced`, or weights above 0 by class name or number; classes without one have weight 1. */
export type ClassWeights = 'balanced' | Readonly<Record<string, number>>

interface Classes {
  /** Undefined if labels are class numbers. */
  readonly names: readonly string[] | undefined
  readonly count: number
  /** Labels of each class in the first rows, if they were counted. */
  readonly counts: readonly number[] | undefined
}

/**
 * The weight of each class. Balanced weights are n/(C·nᶜ) for C classes, of which class c has nᶜ of n rows (King and Zeng,
 * "Logistic regression in rare events data", Political Analysis 9, 2001), rounded to three digits.
 * @throws OptionError for an unknown class, or if the first rows do not determine the weights
 */
export function resolveClassWeights(given: ClassWeights, { names, count, counts }: Classes): readonly number[] {
  const nameOf = (index: number) => names?.[index] ?? String(index)
  const all = Array.from({ length: count }, (_, index) => nameOf(index))
  if (given !== 'balanced') {
    const unknown = Object.keys(given).find(name => !all.includes(name))
    if (unknown !== undefined) {
      throw new OptionError(`class weights: "${unknown}" is not among the classes ${all.slice(0, 20).join(', ')}`)
    }
    return all.map(name => (Object.hasOwn(given, name) ? given[name] : 1))
  }
  if (counts === undefined) {
    throw new OptionError(
      'balanced class weights need a file of text, whose first rows are counted: give weights by class, such as no=1,yes=5'
    )
  }
  const rows = counts.reduce((sum, each) => sum + each, 0)
  return all.map((name, index) => {
    const own = counts[index] ?? 0
    if (own > 0) return Number((rows / (count * own)).toPrecision(3))
    throw new OptionError(
      `class weights: the class "${name}" does not occur in the first rows: give weights by class, such as ${name}=1`
    )
  })
}

/** The weights by class, as a schema has them. */
export function weightsByClass(
  weights: readonly number[] | undefined,
  names: readonly string[] | undefined
): Pick<LabelSchema, 'weights'> {
  if (weights === undefined) return {}
  return { weights: Object.fromEntries(weights.map((weight, index) => [names?.[index] ?? String(index), weight])) }
}
