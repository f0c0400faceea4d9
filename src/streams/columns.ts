/**
 * The columns of a CSV file: what the header says, and which number each column's features get. Numeric columns come
 * first, dense, in the header's order: 0 … n−1. Categorical columns share the hashed space behind them,
 * n … n + 2^hashBits − 1, one feature for each `column=value`.
 */
import { HeaderError } from './errors.js'
import { DEFAULT_HASH_BITS, murmur3 } from './hash.js'
import type { ParserOptions } from './options.js'

/** What a column is for. `open`: a feature whose kind the first row tells. */
export type ColumnKind = 'label' | 'ignored' | 'numeric' | 'categorical' | 'open'

export interface Column {
  readonly name: string
  readonly kind: ColumnKind
  /** Feature number of a numeric column, seed of the value's hash for a categorical one. */
  readonly feature: number
}

export class Columns {
  readonly #columns: Column[]
  readonly #hashBits: number | undefined
  #numeric = 0

  /** @throws HeaderError for a column named twice, or one asked for that the header lacks */
  constructor(names: readonly string[], options: ParserOptions, source: string) {
    const label = options.label ?? 'label'
    const { categorical = [], columns, ignore = [], unlabelled = false } = options
    this.#hashBits = options.hashBits
    const known = new Set(names)
    const header = `${source}: the header (${names.join(', ').slice(0, 200)})`
    if (known.size < names.length) throw new HeaderError(`${header} names a column twice: give each its own name`)
    if (!known.has(label) && !unlabelled) {
      throw new HeaderError(`${header} has no label column "${label}": name the label column`)
    }
    const unknown = [...categorical, ...ignore, ...(columns ?? [])].find(name => !known.has(name))
    if (unknown !== undefined) throw new HeaderError(`${header} has no column "${unknown}": check its spelling`)
    this.#columns = names.map(name => {
      if (name === label) return { name, kind: 'label', feature: 0 }
      if (ignore.includes(name)) return { name, kind: 'ignored', feature: 0 }
      if (categorical.includes(name)) return { name, kind: 'categorical', feature: seedOf(name) }
      if (columns === undefined) return { name, kind: 'open', feature: 0 }
      const feature = columns.indexOf(name)
      return feature < 0 ? { name, kind: 'categorical', feature: seedOf(name) } : { name, kind: 'numeric', feature }
    })
    this.#numeric = columns?.length ?? 0
  }

  get length(): number {
    return this.#columns.length
  }

  /** Number of numeric columns: where the hashed space begins. */
  get numeric(): number {
    return this.#numeric
  }

  /** Size of the hashed space, 0 if no column needs it. */
  get hashed(): number {
    if (this.#hashBits !== undefined) return 2 ** this.#hashBits
    return this.#columns.some(column => column.kind === 'categorical') ? 2 ** DEFAULT_HASH_BITS : 0
  }

  /** Whether the first row has told the kind of every column. */
  get decided(): boolean {
    return this.#columns.every(column => column.kind !== 'open')
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

  /** Settles the open columns by the first row. @param isNumeric for each column, whether its value is a number or empty */
  decide(isNumeric: readonly boolean[]): void {
    for (const [index, column] of this.#columns.entries()) {
      if (column.kind !== 'open') continue
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
