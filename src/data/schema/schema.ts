/**
 * The schema of a table: what each column means, and which features it becomes. Peers that share a schema read their files, in
 * any order of columns, as the same features.
 *
 * Interactions of two columns are columns that are made from others.
 */
import { SchemaError } from '../errors.js'
import { DEFAULT_HASH_BITS, murmur3 } from '../formats/hash.js'
import type { ColumnKind, ColumnRole, ColumnSchema, Interactions, LabelSchema, Schema } from '../types.js'
import { columnSchema } from './table-schema.js'
import type { DateOrder } from './times.js'

const columnKinds: readonly ColumnKind[] = columnSchema.shape.kind.options
export const columnRoles: readonly ColumnRole[] = columnSchema.shape.role.unwrap().options

/** Whether a column's values become features. */
export function isFeature({ kind, role }: ColumnSchema): boolean {
  return kind !== 'ignored' && role === undefined
}

/** A column with the numbers of its features. */
export interface Column extends ColumnSchema {
  /** Number or time: its first feature. */
  readonly feature: number
  /** The feature that is 1 if the value is missing; −1 for none. */
  readonly indicator: number
  /** Category or text: the seed of the hash of its values. */
  readonly seed: number
  /** Category of an interaction: where the encoder keeps its hash; −1 for others. */
  readonly slot: number
}

/** The features that are made from others of the row. */
export interface Derived {
  /** Numbers times numbers, by their features. */
  readonly products: readonly { readonly feature: number; readonly a: number; readonly b: number }[]
  /** Categories times categories, by their slots. */
  readonly crosses: readonly { readonly column: Column; readonly a: number; readonly b: number }[]
  /** Categories times numbers. Their entries are the last ones of a row that a parser returns, with value 1. */
  readonly slopes: readonly {
    readonly column: Column
    readonly slot: number
    readonly number: number
    readonly seed: number
  }[]
}

/** Features of a `time` column. */
const TIME_FEATURES = 7

/**
 * The features of a table: numbers in the order of the schema, times, indicators of missing values, products, and the
 * hashed range, which all categories, texts and their interactions share.
 */
export class Layout {
  readonly columns: readonly Column[]
  readonly derived: Derived
  /** Number of numeric columns. */
  readonly numbers: number
  /** Start of the hashed range. */
  readonly hashedFrom: number
  /** Size of the hashed range, 0 if no column needs it. */
  readonly hashed: number
  readonly #byName: ReadonlyMap<string, Column>

  /** @param hashBits @default 18 if a column is hashed */
  constructor(given: readonly ColumnSchema[], hashBits: number | undefined) {
    const schema = given.map(column =>
      isFeature(column) ? column : { ...column, kind: 'ignored' as const, missing: false }
    )
    let next = 0
    const numbers = schema.map(({ kind }) => (kind === 'number' ? next++ : 0))
    this.numbers = next
    const features = schema.map(({ kind }, index) => {
      if (kind !== 'time') return numbers[index]
      next += TIME_FEATURES
      return next - TIME_FEATURES
    })
    const crossed = new Set(schema.flatMap(({ kind, of = [] }) => (kind === 'interaction' ? of : [])))
    let slot = 0
    const columnOf = (column: ColumnSchema, index: number) => ({
      ...column,
      feature: features[index],
      indicator: column.missing ? next++ : -1,
      seed: seedOf(column.name),
      slot: column.kind === 'category' && crossed.has(column.name) ? slot++ : -1
    })
    const isProduct = isProductOf(schema)
    const columns = schema.map(columnOf)
    this.columns = columns.map(column => (isProduct(column) ? { ...column, feature: next++ } : column))
    this.derived = derivedOf(this.columns)
    this.hashedFrom = next
    const isHashed = schema.some(({ kind }) => kind === 'category' || kind === 'text')
    this.hashed = hashBits !== undefined ? 2 ** hashBits : isHashed ? 2 ** DEFAULT_HASH_BITS : 0
    this.#byName = new Map(this.fields.map(column => [column.name, column]))
  }

  /** Number of features without the constant one. */
  get dimension(): number {
    return this.hashedFrom + this.hashed
  }

  /** The columns that rows contain. */
  get fields(): readonly Column[] {
    return this.columns.filter(column => !isDerived(column))
  }

  /** A column that rows contain. */
  column(name: string): Column | undefined {
    return this.#byName.get(name)
  }
}

/** Tells interactions of two numbers from others. */
function isProductOf(schema: readonly ColumnSchema[]): (column: ColumnSchema) => boolean {
  const categories = new Set(schema.filter(({ kind }) => kind === 'category').map(({ name }) => name))
  return ({ kind, of = [] }) => kind === 'interaction' && !of.some(name => categories.has(name))
}

function derivedOf(columns: readonly Column[]): Derived {
  const byName = new Map(columns.map(column => [column.name, column]))
  const isProduct = isProductOf(columns)
  const pairs = columns
    .filter(({ kind }) => kind === 'interaction')
    .map(column => ({ column, sources: (column.of ?? []).map(name => byName.get(name) as Column) }))
  const products = pairs.flatMap(({ column, sources: [a, b] }) =>
    isProduct(column) ? [{ feature: column.feature, a: a.feature, b: b.feature }] : []
  )
  const crosses = pairs.flatMap(({ column, sources: [a, b] }) =>
    a.slot >= 0 && b.slot >= 0 ? [{ column, a: a.slot, b: b.slot }] : []
  )
  const slopes = pairs.flatMap(({ column, sources }) => {
    const category = sources.find(({ slot }) => slot >= 0)
    const number = sources.find(({ slot }) => slot < 0)
    if (category === undefined || number === undefined) return []
    return [{ column, slot: category.slot, number: number.feature, seed: number.seed }]
  })
  return { products, crosses, slopes }
}

function seedOf(name: string): number {
  const bytes = Buffer.from(name)
  return murmur3(bytes, 0, bytes.length, 0)
}

/** The schema as one line, for comparison and messages: `age:number, city:category`. */
export function schemaText(schema: readonly ColumnSchema[]): string {
  return schema
    .filter(column => isFeature(column) || column.role === 'weight')
    .map(({ name, kind, role, of, missing, bigrams, date, mean, deviation }) => {
      if (role !== undefined) return `${name}:${role}`
      const scaling = mean === undefined && deviation === undefined ? '' : ` (mean ${mean}, deviation ${deviation})`
      const made = of === undefined ? '' : `(${of.join('×')})`
      return `${name}:${kind}${made}${bigrams ? '+bigrams' : ''}${date ? '+date' : ''}${missing ? '?' : ''}${scaling}`
    })
    .join(', ')
}

/**
 * Checks a schema from a file.
 * @param source the file, for messages
 * @throws SchemaError
 */
export function checkedSchema(value: unknown, source: string): Schema {
  const fail = (reason: string): never => {
    throw new SchemaError(`${source}: ${reason}: compare with what admb schema prints`)
  }
  if (!isRecord(value)) return fail('expected the keys label and columns')
  const { label, columns, hashBits, ...rest } = value
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) fail(`unknown key "${unknown}"`)
  if (columns !== undefined && !Array.isArray(columns)) fail('columns must be a list')
  if (
    hashBits !== undefined &&
    !(Number.isInteger(hashBits) && (hashBits as number) >= 1 && (hashBits as number) <= 30)
  ) {
    fail('hashBits must be a whole number from 1 to 30')
  }
  const checked = (columns as unknown[] | undefined)?.map(column => checkedColumn(column, fail))
  const names = new Set(checked?.map(({ name }) => name))
  if (checked && names.size < checked.length) fail('name each column once')
  for (const role of columnRoles) {
    const twice = checked?.filter(column => column.role === role)
    if (twice && twice.length > 1) fail(`give the role ${role} to one column`)
  }
  const target = label === undefined ? undefined : checkedLabel(label, fail)
  if (checked !== undefined) checkDerived(checked, source)
  return {
    ...(target && { label: target }),
    ...(checked && { columns: checked }),
    ...(hashBits !== undefined && { hashBits: hashBits as number })
  }
}

const columnKeys = Object.keys(columnSchema.shape)

function checkedColumn(value: unknown, fail: (reason: string) => never): ColumnSchema {
  if (!isRecord(value) || typeof value.name !== 'string') return fail('each column needs a name')
  const { name, kind, role, of, missing, bigrams, date, decimal, order, origin, na, mean, deviation } = value
  const unknown = Object.keys(value).find(key => !columnKeys.includes(key))
  if (unknown !== undefined) fail(`column "${name}" has the unknown key "${unknown}"`)
  if (!columnKinds.includes(kind as ColumnKind)) fail(`column "${name}": kind must be one of ${columnKinds.join(', ')}`)
  if (role !== undefined && role !== 'feature' && !columnRoles.includes(role as ColumnRole)) {
    fail(`column "${name}": role must be one of feature, ${columnRoles.join(', ')}`)
  }
  for (const [key, flag] of Object.entries({ missing, bigrams, date })) {
    if (flag !== undefined && typeof flag !== 'boolean') fail(`column "${name}": ${key} must be true or false`)
  }
  if (date === true && kind !== 'number') fail(`column "${name}": only a number can be a date`)
  if ((mean === undefined) !== (deviation === undefined)) fail(`column "${name}": give both mean and deviation`)
  const isScaled = Number.isFinite(mean) && Number.isFinite(deviation) && (deviation as number) > 0
  if (mean !== undefined && !isScaled) fail(`column "${name}": mean must be a number, and deviation above 0`)
  if (mean !== undefined && kind !== 'number' && kind !== 'time') {
    fail(`column "${name}": only a number or a time can be scaled`)
  }
  if (decimal !== undefined && !['.', ',', 'both'].includes(decimal as string)) {
    fail(`column "${name}": decimal must be ".", "," or both`)
  }
  if (order !== undefined && !['mdy', 'dmy', 'ymd'].includes(order as string)) {
    fail(`column "${name}": order must be mdy, dmy or ymd`)
  }
  if (origin !== undefined && !Number.isFinite(origin)) fail(`column "${name}": origin must be a number`)
  const texts = typeof na === 'string' ? [na] : na
  if (texts !== undefined && !(Array.isArray(texts) && texts.every(one => typeof one === 'string'))) {
    fail(`column "${name}": na must be a list of texts`)
  }
  const notation = {
    ...(decimal !== undefined && decimal !== '.' && { decimal: decimal as ',' | 'both' }),
    ...(order !== undefined && { order: order as DateOrder })
  }
  const sources = typeof of === 'string' ? [of] : of
  if (sources !== undefined && !(Array.isArray(sources) && sources.every(one => typeof one === 'string'))) {
    fail(`column "${name}": of must be a list of columns`)
  }
  if (role !== undefined && role !== 'feature') {
    return { name, kind: kind as ColumnKind, role: role as ColumnRole, ...notation }
  }
  const indicated = missing === true && (kind === 'number' || kind === 'time')
  return {
    name,
    kind: kind as ColumnKind,
    ...(sources !== undefined && { of: sources as string[] }),
    ...(indicated && { missing: true }),
    ...(bigrams === true && kind === 'text' && { bigrams }),
    ...(date === true && { date }),
    ...notation,
    ...(origin !== undefined && { origin: origin as number }),
    ...(texts !== undefined && { na: texts as string[] }),
    ...(mean !== undefined && { mean: mean as number, deviation: deviation as number })
  }
}

function checkedLabel(value: unknown, fail: (reason: string) => never): LabelSchema {
  if (!isRecord(value)) return fail('label must have a kind')
  // Classes that were added come with the predictor.
  const { name, kind, names, classes, added: _added, weights, mean, deviation, ...rest } = value
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) fail(`label has the unknown key "${unknown}"`)
  if (name !== undefined && typeof name !== 'string') fail('label: name must be a text')
  if (kind !== 'class' && kind !== 'number') fail('label: kind must be class or number')
  if (kind === 'number' && (names ?? classes) !== undefined) fail('label: a number has no classes')
  const isScaled = Number.isFinite(mean) && Number.isFinite(deviation) && (deviation as number) > 0
  if ((mean ?? deviation) !== undefined && (kind === 'class' || !isScaled)) {
    fail('label: mean must be a number, and deviation above 0, for a label that is a number')
  }
  const isWeight = (weight: unknown) => Number.isFinite(weight) && (weight as number) > 0
  if (weights !== undefined && (kind === 'number' || !isRecord(weights) || !Object.values(weights).every(isWeight))) {
    fail('label: weights must give a number above 0 by class')
  }
  if (names !== undefined && !Array.isArray(names)) fail('label: names must be a list')
  // YAML reads `no` as text, but 1 as a number.
  const texts = (names as unknown[] | undefined)?.map(String)
  if (texts && new Set(texts).size < Math.max(2, texts.length)) fail('label: give at least two names, each once')
  if (texts && classes !== undefined && (classes as number) < texts.length)
    fail('label: there are more names than classes')
  if (classes !== undefined && !(Number.isInteger(classes) && (classes as number) >= 2)) {
    fail('label: classes must be a whole number from 2')
  }
  return {
    ...(name !== undefined && { name: name as string }),
    kind: kind as 'class' | 'number',
    ...(texts && { names: texts }),
    ...(classes !== undefined && { classes: classes as number }),
    ...(weights !== undefined && { weights: weights as Record<string, number> }),
    ...(isScaled && { mean: mean as number, deviation: deviation as number })
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What to add to the columns of a table. */
export interface DerivedHints {
  /**
   * Pairs of columns: products of numbers, crosses of categories. VW: pairs of namespaces, whose features are multiplied. `all`:
   * all pairs of columns, or of the features of rows without columns.
   * @default none
   */
  readonly interactions?: Interactions
}

/** Whether a column is made from others, so that rows do not contain it. */
export function isDerived({ of }: ColumnSchema): boolean {
  return of !== undefined
}

/**
 * Adds the columns that the hints describe and the schema lacks, in the order of their names.
 * @throws SchemaError
 */
export function withDerived<Column extends ColumnSchema>(
  columns: readonly Column[],
  { interactions = [] }: DerivedHints,
  source: string
): readonly (Column | ColumnSchema)[] {
  const known = new Set(columns.map(({ name }) => name))
  const given = interactions === 'all' ? pairsOf(columns) : interactions
  const pairs = given.map((pair): ColumnSchema => {
    const of = [...pair].sort()
    return { name: of.join(':'), kind: 'interaction', of }
  })
  const added = new Map(pairs.filter(({ name }) => !known.has(name)).map(one => [one.name, one]))
  if (added.size === 0) return columns
  const all = [...columns, ...[...added.values()].sort((a, b) => (a.name < b.name ? -1 : 1))]
  checkDerived(all, source)
  return all
}

/** All pairs of columns that can be multiplied. */
function pairsOf(columns: readonly ColumnSchema[]): readonly [string, string][] {
  const plain = columns.filter(({ kind, role }) => role === undefined && (kind === 'number' || kind === 'category'))
  return plain.flatMap(({ name }, i) => plain.slice(i + 1).map((other): [string, string] => [name, other.name]))
}

/** @throws SchemaError if a column is made from others that do not exist or do not fit */
function checkDerived(columns: readonly ColumnSchema[], source: string): void {
  const byName = new Map(columns.map(column => [column.name, column]))
  const fail = (reason: string): never => {
    throw new SchemaError(`${source}: ${reason}`)
  }
  for (const { name, kind, of = [] } of columns) {
    if (kind !== 'interaction') {
      if (of.length > 0) fail(`column "${name}": of is for interactions`)
      continue
    }
    const sources = of.map(one => byName.get(one))
    const unknown = of.find((_, i) => sources[i] === undefined)
    if (unknown !== undefined)
      fail(`"${name}" needs the column "${unknown}", which the data do not have: check its spelling`)
    const unfit = sources.find(one => one?.role !== undefined || (one?.kind !== 'number' && one?.kind !== 'category'))
    if (unfit !== undefined) {
      fail(`"${name}" is made from numbers and categories, and "${unfit.name}" is ${unfit.role ?? unfit.kind}`)
    }
    if (of.length !== 2) fail(`"${name}": give two columns as of`)
    if (of[0] === of[1] && sources[0]?.kind === 'category') fail(`"${name}": a category has no square`)
  }
}

/** The hash of a pair of hashed values (the finaliser of MurmurHash3 over both). */
export function crossHash(a: number, b: number): number {
  let hash = Math.imul(a, 0x01000193) ^ b
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
