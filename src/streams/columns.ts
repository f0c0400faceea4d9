/**
 * The columns of a CSV file and the numbers of their features. Numeric columns have the first numbers 0 … n−1, in the header's
 * order. Categorical columns share the hashed range n … n + 2^hashBits − 1, with one feature for each `column=value`.
 */
import { HeaderError } from './errors.js'
import { DEFAULT_HASH_BITS, murmur3 } from './hash.js'
import type { ParserOptions } from './options.js'

/** The role of a column. `undecided`: a feature whose kind depends on the first row. */
export type ColumnKind = 'label' | 'ignored' | 'numeric' | 'categorical' | 'undecided'

export interface Column {
  readonly name: string
  readonly kind: ColumnKind
  /** Feature number of a numeric column, or seed of the value's hash for a categorical one. */
  readonly feature: number
}

export class Columns {
  readonly #columns: Column[]
  readonly #hashBits: number | undefined
  #numeric = 0

  /** @throws HeaderError for a duplicate column, or an option that names a column that is not in the header */
  constructor(names: readonly string[], options: ParserOptions, source: string) {
    const label = options.label ?? 'label'
    const { categorical = [], columns, ignore = [], unlabelled = false } = options
    this.#hashBits = options.hashBits
    const known = new Set(names)
    const header = `${source}: the header (${names.join(', ').slice(0, 200)})`
    if (known.size < names.length)
      throw new HeaderError(`${header} has a duplicate column: give each column its own name`)
    if (!known.has(label) && !unlabelled) {
      throw new HeaderError(`${header} has no label column "${label}": give its name with label`)
    }
    const unknown = [...categorical, ...ignore, ...(columns ?? [])].find(name => !known.has(name))
    if (unknown !== undefined) throw new HeaderError(`${header} has no column "${unknown}": check its spelling`)
    this.#columns = names.map(name => {
      if (name === label) return { name, kind: 'label', feature: 0 }
      if (ignore.includes(name)) return { name, kind: 'ignored', feature: 0 }
      if (categorical.includes(name)) return { name, kind: 'categorical', feature: seedOf(name) }
      if (columns === undefined) return { name, kind: 'undecided', feature: 0 }
      const feature = columns.indexOf(name)
      return feature < 0 ? { name, kind: 'categorical', feature: seedOf(name) } : { name, kind: 'numeric', feature }
    })
    this.#numeric = columns?.length ?? 0
  }

  get length(): number {
    return this.#columns.length
  }

  /** Number of numeric columns, which is the start of the hashed range. */
  get numeric(): number {
    return this.#numeric
  }

  /** Size of the hashed range, 0 if no column needs it. */
  get hashed(): number {
    if (this.#hashBits !== undefined) return 2 ** this.#hashBits
    return this.#columns.some(column => column.kind === 'categorical') ? 2 ** DEFAULT_HASH_BITS : 0
  }

  /** Whether the kind of every column is known. */
  get decided(): boolean {
    return this.#columns.every(column => column.kind !== 'undecided')
  }

  /** Names of the numeric columns by feature number. */
  get numericNames(): string[] {
    const numeric = this.#columns.filter(column => column.kind === 'numeric')
    return numeric.sort((a, b) => a.feature - b.feature).map(column => column.name)
  }

  at(index: number): Column {
    return this.#columns[index]
  }

  names(): string[] {
    return this.#columns.map(column => column.name)
  }

  /** Decides the undecided columns by the first row. @param isNumeric for each column, whether its value is a number or empty */
  decide(isNumeric: readonly boolean[]): void {
    for (const [index, column] of this.#columns.entries()) {
      if (column.kind !== 'undecided') continue
      const { name } = column
      this.#columns[index] = isNumeric[index]
        ? { name, kind: 'numeric', feature: this.#numeric++ }
        : { name, kind: 'categorical', feature: seedOf(name) }
    }
  }
}

function seedOf(name: string): number {
  const bytes = Buffer.from(name)
  return murmur3(bytes, 0, bytes.length, 0)
}
