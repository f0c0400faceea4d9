/**
 * The schema of a table: what each column means, and which features it becomes. Peers that share a schema read their files,
 * in any order of columns, as the same features.
 */
import { SchemaError } from '../errors.js'
import { DEFAULT_HASH_BITS, murmur3 } from '../hash.js'
import type { ColumnKind, ColumnSchema, LabelSchema, Schema } from './types.js'

export const columnKinds: readonly ColumnKind[] = ['number', 'category', 'text', 'time', 'ignored']

/** A column with the numbers of its features. */
export interface Column extends ColumnSchema {
  /** Number or time: its first feature. */
  readonly feature: number
  /** The feature that is 1 if the value is missing; −1 for none. */
  readonly indicator: number
  /** Category or text: the seed of the hash of its values. */
  readonly seed: number
}

/** Features of a `time` column. */
export const TIME_FEATURES = 7

/**
 * The features of a table: numbers in the order of the schema, times, indicators of missing values, and the hashed range, which
 * all categories and texts share.
 */
export class Layout {
  readonly columns: readonly Column[]
  /** Number of numeric columns, whose features come first. */
  readonly numbers: number
  /** Start of the hashed range. */
  readonly hashedFrom: number
  /** Size of the hashed range, 0 if no column needs it. */
  readonly hashed: number
  readonly #byName: ReadonlyMap<string, Column>

  /** @param hashBits @default 18 if a column is hashed */
  constructor(schema: readonly ColumnSchema[], hashBits: number | undefined) {
    let next = 0
    const numbers = schema.map(({ kind }) => (kind === 'number' ? next++ : 0))
    this.numbers = next
    const features = schema.map(({ kind }, index) => {
      if (kind !== 'time') return numbers[index]
      next += TIME_FEATURES
      return next - TIME_FEATURES
    })
    this.columns = schema.map((column, index) => ({
      ...column,
      feature: features[index],
      indicator: column.missing ? next++ : -1,
      seed: seedOf(column.name)
    }))
    this.hashedFrom = next
    const isHashed = schema.some(({ kind }) => kind === 'category' || kind === 'text')
    this.hashed = hashBits !== undefined ? 2 ** hashBits : isHashed ? 2 ** DEFAULT_HASH_BITS : 0
    this.#byName = new Map(this.columns.map(column => [column.name, column]))
  }

  /** Number of features without the constant one. */
  get dimension(): number {
    return this.hashedFrom + this.hashed
  }

  column(name: string): Column | undefined {
    return this.#byName.get(name)
  }
}

function seedOf(name: string): number {
  const bytes = Buffer.from(name)
  return murmur3(bytes, 0, bytes.length, 0)
}

/** The schema as one line, for comparison and messages: `age:number, city:category`. */
export function schemaText(schema: readonly ColumnSchema[]): string {
  return schema
    .filter(({ kind }) => kind !== 'ignored')
    .map(({ name, kind, missing, bigrams, mean, deviation }) => {
      const scaling = mean === undefined && deviation === undefined ? '' : ` (mean ${mean}, deviation ${deviation})`
      return `${name}:${kind}${bigrams ? '+bigrams' : ''}${missing ? '?' : ''}${scaling}`
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
  return {
    ...(label !== undefined && { label: checkedLabel(label, fail) }),
    ...(checked && { columns: checked }),
    ...(hashBits !== undefined && { hashBits: hashBits as number })
  }
}

function checkedColumn(value: unknown, fail: (reason: string) => never): ColumnSchema {
  if (!isRecord(value) || typeof value.name !== 'string') return fail('each column needs a name')
  const { name, kind, missing, bigrams, mean, deviation } = value
  const unknown = Object.keys(value).find(
    key => !['name', 'kind', 'missing', 'bigrams', 'mean', 'deviation'].includes(key)
  )
  if (unknown !== undefined) fail(`column "${name}" has the unknown key "${unknown}"`)
  if (!columnKinds.includes(kind as ColumnKind)) fail(`column "${name}": kind must be one of ${columnKinds.join(', ')}`)
  for (const [key, flag] of Object.entries({ missing, bigrams })) {
    if (flag !== undefined && typeof flag !== 'boolean') fail(`column "${name}": ${key} must be true or false`)
  }
  if ((mean === undefined) !== (deviation === undefined)) fail(`column "${name}": give both mean and deviation`)
  const isScaled = Number.isFinite(mean) && Number.isFinite(deviation) && (deviation as number) > 0
  if (mean !== undefined && !isScaled) fail(`column "${name}": mean must be a number, and deviation above 0`)
  if (mean !== undefined && kind !== 'number') fail(`column "${name}": only a number can be scaled`)
  const indicated = missing === true && (kind === 'number' || kind === 'time')
  return {
    name,
    kind: kind as ColumnKind,
    ...(indicated && { missing: true }),
    ...(bigrams === true && kind === 'text' && { bigrams }),
    ...(mean !== undefined && { mean: mean as number, deviation: deviation as number })
  }
}

function checkedLabel(value: unknown, fail: (reason: string) => never): LabelSchema {
  if (!isRecord(value)) return fail('label must have a kind')
  const { name, kind, names, classes, mean, deviation, ...rest } = value
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) fail(`label has the unknown key "${unknown}"`)
  if (name !== undefined && typeof name !== 'string') fail('label: name must be a text')
  if (kind !== 'class' && kind !== 'number') fail('label: kind must be class or number')
  if (kind === 'number' && (names ?? classes) !== undefined) fail('label: a number has no classes')
  const isScaled = Number.isFinite(mean) && Number.isFinite(deviation) && (deviation as number) > 0
  if ((mean ?? deviation) !== undefined && (kind === 'class' || !isScaled)) {
    fail('label: mean must be a number, and deviation above 0, for a label that is a number')
  }
  if (names !== undefined && !Array.isArray(names)) fail('label: names must be a list')
  // YAML reads `no` as text, but 1 as a number.
  const texts = (names as unknown[] | undefined)?.map(String)
  if (texts && new Set(texts).size < Math.max(2, texts.length)) fail('label: give at least two names, each once')
  if (classes !== undefined && !(Number.isInteger(classes) && (classes as number) >= 2)) {
    fail('label: classes must be a whole number from 2')
  }
  return {
    ...(name !== undefined && { name: name as string }),
    kind: kind as 'class' | 'number',
    ...(texts && { names: texts }),
    ...(classes !== undefined && { classes: classes as number }),
    ...(isScaled && { mean: mean as number, deviation: deviation as number })
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
