/** Names of a model's features, and the columns that they belong to. */
import { type ColumnSchema, Layout, type OnHashed, timeFeatureNames } from '../../data/index.js'
import type { FeatureSpec } from '../../task/learning-spec.js'

interface Named {
  /** Name of the column. */
  readonly column: string
  readonly name: string
}

interface HashedValue extends Named {
  count: number
}

export class FeatureNames {
  /** Features of numbers, times and missing values. */
  readonly #known = new Map<number, Named>()
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
      const set = (at: number, text: string) => this.#known.set(at + this.#constant, { column: name, name: text })
      const isProduct = kind === 'interaction' && products.has(feature)
      if (kind === 'number' || kind === 'lag' || isProduct) set(feature, name)
      if (kind === 'time') for (const [i, part] of timeFeatureNames.entries()) set(feature + i, `${name}: ${part}`)
      if (indicator >= 0) set(indicator, `${name}: missing`)
    }
  }

  /** Notes the values of the rows, which name the hashed features. */
  readonly note: OnHashed = (feature, { name: column, kind }, value) => {
    const name = value === undefined ? `${column}: missing` : `${column}${separatorOf(kind, column)}${value}`
    const values = this.#hashed.get(feature) ?? []
    const known = values.find(one => one.name === name)
    if (known === undefined) values.push({ column, name, count: 1 })
    else known.count++
    this.#hashed.set(feature, values)
  }

  isConstant(feature: number): boolean {
    return this.#constant === 1 && feature === 0
  }

  /** The name of a feature. If several values share it, that of the most frequent one, with the number of the others. */
  nameOf(feature: number): string {
    const known = this.#known.get(feature)
    if (known !== undefined) return known.name
    const [first, ...others] = this.#valuesOf(feature)
    // Features are numbered from 1, as in LIBSVM.
    if (first === undefined) return `${this.#isTable ? 'value with hash' : 'feature'} ${feature - this.#constant + 1}`
    return others.length === 0 ? first.name : `${first.name} (and ${others.length} more)`
  }

  /** The column of a feature; that of the most frequent value if several columns share it. Without columns, its own name. */
  columnOf(feature: number): string {
    return this.#known.get(feature)?.column ?? this.#valuesOf(feature)[0]?.column ?? this.nameOf(feature)
  }

  #valuesOf(feature: number): readonly HashedValue[] {
    return [...(this.#hashed.get(feature) ?? [])].sort((a, b) => b.count - a.count)
  }
}

/** Between a column and its value, or as in VW a namespace and the name of a feature. */
function separatorOf(kind: ColumnSchema['kind'], column: string): string {
  if (kind === 'number') return column === '' ? '' : '^'
  return kind === 'text' ? ': ' : '='
}
