/** Weights of classes: factors of the gradients of their inputs, for classes that are rare or matter more. */

import { OptionError } from '../learner/index.js'
import type { LabelSchema } from '../streams/index.js'

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
