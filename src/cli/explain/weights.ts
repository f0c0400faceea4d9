/** The weights of a linear model by name, with the effect of a usual change of each feature. */
import { type ColumnSchema, Layout, type OnHashed, timeFeatureNames } from '../../data/index.js'
import type { Examples } from '../../learning/index.js'
import { type FeatureSpec, type LearningSpec, predictsNumbers, targetScaleOf } from '../../task/learning-spec.js'
import type { Stored } from '../training/stored.js'

/** A weight of one score. Of several classes, it is relative to the mean of the classes. */
export interface Weight {
  readonly feature: string
  /** The class whose score the weight increases; undefined for regression. With two classes, a negative weight increases the other. */
  readonly class?: string
  /** Change of the score for a change by 1 of the model's input. A regression has it in units of the target. */
  readonly weight: number
  /** Change of the score for a change by 1 of the column's value; absent unless it is a number that the model scales. */
  readonly perUnit?: number
  /** Change of the score for a change by one standard deviation; absent if that is not known. */
  readonly effect?: number
}

export interface Weights {
  /** Scores of an input whose features are all 0: one number, or one for each class. */
  readonly constant?: readonly number[]
  /** Weights that are not 0, the largest effects first. Without an effect, the weight itself counts. */
  readonly weights: readonly Weight[]
}

/** Standard deviation of each feature in rows. Features that do not occur have none. */
export function deviationsOf({ size, offsets, indices, values }: Examples): ReadonlyMap<number, number> {
  const found = new Map<number, { count: number; sum: number; squares: number }>()
  for (let i = 0; i < offsets[size]; i++) {
    const one = found.get(indices[i]) ?? { count: 0, sum: 0, squares: 0 }
    one.count++
    one.sum += values[i]
    found.set(indices[i], one)
  }
  // In a second pass, because the difference of two large sums is not exact.
  for (let i = 0; i < offsets[size]; i++) {
    const one = found.get(indices[i])
    if (one !== undefined) one.squares += (values[i] - one.sum / size) ** 2
  }
  const deviationOf = ({ count, sum, squares }: { count: number; sum: number; squares: number }) =>
    Math.sqrt((squares + (size - count) * (sum / size) ** 2) / size)
  return new Map([...found].map(([feature, one]) => [feature, deviationOf(one)]))
}

/**
 * @param weights of a linear model: those of a feature are adjacent
 * @param deviations of the features in rows of data, if there are any
 */
export function namedWeights(
  { spec, scaling }: Pick<Stored, 'spec' | 'scaling'>,
  weights: Float32Array,
  names: FeatureNames,
  deviations: ReadonlyMap<number, number> | undefined
): Weights {
  const outputs = weights.length / spec.dimension
  const unit = targetScaleOf(spec)?.deviation ?? 1
  const scaled = scaledNumbers(spec)
  // Classes that are not known yet have no weights.
  const used = outputs === 1 ? 1 : Math.min(outputs, spec.features.classNames?.length ?? outputs)
  const classes = classesOf(spec, used)
  const found: (Weight & { readonly rank: number })[] = []
  let constant: readonly number[] | undefined
  for (let feature = 0; feature < spec.dimension; feature++) {
    const own = weights.subarray(feature * outputs, feature * outputs + used)
    if (names.isConstant(feature)) {
      constant = Array.from(own, weight => unit * weight + (targetScaleOf(spec)?.mean ?? 0))
      continue
    }
    if (own.every(weight => weight === 0)) continue
    const centre = outputs === 1 ? 0 : own.reduce((sum, weight) => sum + weight, 0) / used
    const divisor =
      scaled.get(feature) ?? (spec.features.scale === 'standard' ? scaling.moments.of(feature)?.deviation : 0)
    // A number that the model scales has a deviation of about 1.
    const deviation = deviations === undefined ? (divisor ? 1 : undefined) : (deviations.get(feature) ?? 0)
    for (const [output, value] of own.entries()) {
      const weight = unit * (value - centre)
      const effect = deviation === undefined ? undefined : weight * deviation
      found.push({
        feature: names.nameOf(feature),
        class: classes?.[output],
        weight,
        perUnit: divisor ? weight / divisor : undefined,
        effect,
        rank: Math.abs(effect ?? weight)
      })
    }
  }
  const sorted = found.sort((a, b) => b.rank - a.rank).map(({ rank: _rank, ...weight }) => weight)
  return { constant, weights: sorted }
}

/** The class of each score; undefined for regression. */
function classesOf(spec: LearningSpec, outputs: number): readonly string[] | undefined {
  if (predictsNumbers(spec)) return undefined
  const nameOf = (index: number) => spec.features.classNames?.[index] ?? String(index)
  return outputs === 1 ? [nameOf(1)] : Array.from({ length: outputs }, (_, index) => nameOf(index))
}

/** Deviations of the numbers that the schema scales, by feature. */
function scaledNumbers({ features: { columns, hashBits, constant } }: LearningSpec): ReadonlyMap<number, number> {
  if (columns === undefined) return new Map()
  return new Map(
    new Layout(columns, hashBits).columns.flatMap(({ kind, feature, deviation }) =>
      kind === 'number' && deviation !== undefined ? [[feature + Number(constant), deviation] as const] : []
    )
  )
}

interface HashedValue {
  readonly name: string
  count: number
}

export class FeatureNames {
  /** Features of numbers, times and missing values. */
  readonly #known = new Map<number, string>()
  /** Values of each hashed feature, which may share it. */
  readonly #hashed = new Map<number, HashedValue[]>()
  readonly #constant: number
  readonly #isTable: boolean

  constructor({ constant, columns, hashBits }: FeatureSpec) {
    this.#constant = Number(constant)
    this.#isTable = columns !== undefined
    if (columns === undefined) return
    const { columns: named, derived } = new Layout(columns, hashBits)
    const products = new Set(derived.products.map(one => one.feature))
    for (const { name, kind, feature, indicator } of named) {
      const set = (at: number, text: string) => this.#known.set(at + this.#constant, text)
      const isProduct = kind === 'interaction' && products.has(feature)
      if (kind === 'number' || isProduct) set(feature, name)
      if (kind === 'time') for (const [i, part] of timeFeatureNames.entries()) set(feature + i, `${name}: ${part}`)
      if (indicator >= 0) set(indicator, `${name}: missing`)
    }
  }

  /** Notes the values of the rows, which name the hashed features. */
  readonly note: OnHashed = (feature, { name: column, kind }, value) => {
    const name = value === undefined ? `${column}: missing` : `${column}${separatorOf(kind, column)}${value}`
    const values = this.#hashed.get(feature) ?? []
    const known = values.find(one => one.name === name)
    if (known === undefined) values.push({ name, count: 1 })
    else known.count++
    this.#hashed.set(feature, values)
  }

  isConstant(feature: number): boolean {
    return this.#constant === 1 && feature === 0
  }

  /** The name of a feature. If several values share it, that of the most frequent one, with the number of the others. */
  nameOf(feature: number): string {
    const known = this.#known.get(feature)
    if (known !== undefined) return known
    const [first, ...others] = [...(this.#hashed.get(feature) ?? [])].sort((a, b) => b.count - a.count)
    // Features are numbered from 1, as in LIBSVM.
    if (first === undefined) return `${this.#isTable ? 'value with hash' : 'feature'} ${feature - this.#constant + 1}`
    return others.length === 0 ? first.name : `${first.name} (and ${others.length} more)`
  }
}

/** Between a column and its value, or as in VW a namespace and the name of a feature. */
function separatorOf(kind: ColumnSchema['kind'], column: string): string {
  if (kind === 'number') return column === '' ? '' : '^'
  return kind === 'text' ? ': ' : '='
}
