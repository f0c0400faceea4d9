/** Infers a schema from the first rows of an input. */
import { roundedScale } from '../../numeric/numbers.js'
import { SchemaError } from '../errors.js'
import { listed, shortened } from '../formats/labels.js'
import type { ColumnRole, LabelSchema } from '../types.js'
import type { FirstRows, InferredColumn } from './columns.js'
import { type DecimalMark, numberOf } from './numbers.js'
import { columnRoles } from './schema.js'

/** Maximum number of rows in the sample. */
export const SAMPLE_ROWS = 10_000
/** Share of labels from which they are numbers although others are texts. */
const MOSTLY_NUMBERS = 0.8
/** Largest number of classes among whole numbers, unless the task is known to be a classification. */
const MAX_NUMBER_CLASSES = 100
/** Largest number of classes whose labels are texts. */
const MAX_NAMED_CLASSES = 10_000

/** One line for people: `label "bought": classes no, yes; 2 numbers, 1 category; missing: 2.0 % of age`. */
export function describe(label: LabelSchema | undefined, columns: readonly InferredColumn[] | undefined): string {
  const parts: string[] = []
  if (label !== undefined) {
    const name = label.name === undefined ? 'label' : `label "${label.name}"`
    const classes = label.names ? `classes ${listed(label.names)}` : `${label.classes} classes by number`
    parts.push(`${name}: ${label.kind === 'number' ? 'a number' : classes}`)
  }
  if (columns !== undefined) {
    for (const { name, role } of columns) if (role !== undefined) parts.push(`${role} "${name}"`)
    const features = columns.filter(column => column.role === undefined)
    const plural = {
      number: 'numbers',
      category: 'categories',
      text: 'texts',
      time: 'times',
      ignored: 'ignored',
      interaction: 'interactions'
    }
    const counts = Object.entries(plural).flatMap(([kind, many]) => {
      const count = features.filter(column => column.kind === kind).length
      return count === 0 ? [] : [`${count} ${count === 1 ? kind : many}`]
    })
    parts.push(counts.length === 0 ? 'no features' : counts.join(', '))
    const missing = columns.filter(({ missingShare }) => missingShare > 0)
    const shares = missing.map(({ name, missingShare }) => `${(100 * missingShare).toFixed(1)} % of ${name}`)
    if (shares.length > 0) parts.push(`missing: ${listed(shares)}`)
  }
  return parts.join('; ')
}

interface LabelHints {
  /** @default inferred */
  readonly target?: 'class' | 'number'
  /** @default inferred */
  readonly classes?: number
  /** Labels of columns: what an ambiguous mark means. @default '.' */
  readonly decimal?: DecimalMark
  /** Whether labels are values of a column, which may be written as people write numbers. @default true */
  readonly hasColumns?: boolean
}

/**
 * What the label is. Whole numbers from 0 on, and −1 with +1, are class numbers. Other numbers and texts are class names, in
 * the order of numbers or of UTF-16 code units, which does not depend on the order of rows.
 * @param labels of the first rows, without missing ones; numbers in any notation
 * @param what the label in messages, such as `data.csv: the label "bought"`
 * @returns undefined if there is no label to infer it from
 * @throws SchemaError if the labels do not fit the hints
 */
export function inferLabel(
  labels: readonly string[],
  { target, classes, decimal, hasColumns = true }: LabelHints,
  what: string
): Omit<LabelSchema, 'name'> | undefined {
  if (labels.length === 0)
    return target === undefined ? undefined : { kind: target, ...(classes !== undefined && { classes }) }
  const isNumber = (label: string) => hasColumns || PLAIN_NUMBER.test(label)
  const different = [...new Set(labels)]
  const values = new Map(
    different.map(label => [label, isNumber(label) ? labelNumber(label, decimal, target) : undefined])
  )
  const numbers = labels.map(label => values.get(label))
  const text = different.find(label => values.get(label) === undefined)
  const known = numbers.filter(number => number !== undefined)
  // A few texts among numbers are labels that are missing or wrong, and their rows are malformed.
  const areMostly = known.length >= MOSTLY_NUMBERS * labels.length
  const isOpen = target === undefined && classes === undefined
  if (areMostly && (target === 'number' || (isOpen && isQuantity(known))))
    return { kind: 'number', ...roundedScale(known) }
  if (target === 'number') {
    throw new SchemaError(
      `${what} has the value "${shortened(text ?? '')}", and the model predicts numbers: choose a model for classes, or another label`
    )
  }
  const names = text === undefined ? [...new Set(numbers.map(String))] : different
  if (text === undefined) names.sort((a, b) => Number(a) - Number(b))
  else names.sort()
  if (
    names.length > MAX_NAMED_CLASSES ||
    (text !== undefined && names.length > 100 && 2 * names.length > labels.length)
  ) {
    throw new SchemaError(
      `${what} has ${names.length} different texts in ${labels.length} rows: check that it is the label`
    )
  }
  const count = text === undefined ? classNumbers(names.map(Number)) : undefined
  const needed = count ?? names.length
  if (classes !== undefined && (needed > classes || (count === undefined && needed < classes))) {
    throw new SchemaError(
      `${what} has ${names.length} classes (${listed(names)}) in the first rows, and the model ${classes}: ${
        needed > classes ? 'choose a model for more classes' : 'give all class names'
      }`
    )
  }
  if (count !== undefined) return { kind: 'class', classes: classes ?? count }
  if (names.length > 1) return { kind: 'class', names, classes: names.length }
  throw new SchemaError(
    `${what} has only the class "${shortened(names[0])}" in the first rows: give all class names (--class-names), and --shuffle-window if the rows are sorted by it`
  )
}

const PLAIN_NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i

/** The number that a label is. Digits with leading zeros are a name. */
function labelNumber(
  label: string,
  decimal: DecimalMark | undefined,
  target: LabelHints['target']
): number | undefined {
  if (target === 'number' && /^(true|false)$/i.test(label)) return Number(label.length === 4)
  return /^0\d+$/.test(label) ? undefined : numberOf(label, decimal)
}

/** Whether numbers are values to predict: fractions, or whole numbers too many to be classes. */
export function isQuantity(numbers: readonly number[]): boolean {
  const distinct = new Set(numbers).size
  if (numbers.some(value => !Number.isInteger(value))) return true
  if (numbers.some(value => Math.abs(value) >= 2 ** 24)) return true
  if (distinct > MAX_NUMBER_CLASSES || (distinct > 20 && distinct > numbers.length / 10)) return true
  // Classes are counted from 0 or 1.
  const least = numbers.reduce((a, b) => Math.min(a, b))
  return distinct > 20 && least !== 0 && least !== 1
}

/** The number of classes, if the labels are class numbers, or −1 and +1. */
function classNumbers(sorted: readonly number[]): number | undefined {
  if (sorted.every(Number.isInteger) === false) return undefined
  const [first] = sorted
  const last = sorted[sorted.length - 1]
  if (sorted.every(value => value === -1 || value === 1) || sorted.every(value => value === 0 || value === 1)) return 2
  // Few gaps are classes that the first rows lack; many mean that the numbers are names.
  return first === 0 && last + 1 <= 2 * sorted.length ? last + 1 : undefined
}

/** Largest number of keys of a table. Names of further ones are hashed. */
const MAX_KEYS = 1000
/** Share of the keys that a row of a table has on average. Rows with fewer are sparse, and their names are hashed. */
const MIN_SHARE = 0.2

interface Hints extends Partial<Record<ColumnRole, string>> {
  readonly label?: string
}

interface JsonTable {
  readonly rows: FirstRows
  /** Keys whose values are objects or arrays, which are left out. */
  readonly nested: readonly string[]
}

/** @returns undefined if the rows are no table: arrays of numbers, or sparse */
export function jsonTable(head: Uint8Array, hints: Hints): JsonTable | undefined {
  const label = hints.label ?? 'label'
  const apart = new Set([label, ...columnRoles.flatMap(role => hints[role] ?? [])])
  const rows: Readonly<Record<string, unknown>>[] = []
  for (const object of objectsOf(head)) {
    const { features } = object
    if (Array.isArray(features)) return undefined
    if (!isObject(features)) rows.push(object)
    else {
      const others = Object.entries(object).filter(([key]) => apart.has(key))
      rows.push({ ...features, ...Object.fromEntries(others) })
    }
  }
  if (rows.length === 0) return undefined
  const keys = new Map<string, { present: number; nested: number }>()
  let cells = 0
  for (const row of rows) {
    for (const [key, value] of Object.entries(row)) {
      if (key !== label) cells++
      const seen = keys.get(key) ?? { present: 0, nested: 0 }
      seen.present++
      if (typeof value === 'object' && value !== null) seen.nested++
      keys.set(key, seen)
    }
  }
  const features = keys.size - Number(keys.has(label))
  if (features === 0 || features > MAX_KEYS || cells < MIN_SHARE * features * rows.length) return undefined
  const nested = [...keys].filter(([, seen]) => 2 * seen.nested > seen.present).map(([key]) => key)
  const names = [...keys.keys()].filter(key => !nested.includes(key))
  return { rows: new Map(names.map(name => [name, rows.map(row => textOf(row[name]))])), nested }
}

/** The objects of complete lines. Others are reported when they are read. */
function* objectsOf(head: Uint8Array): Generator<Readonly<Record<string, unknown>>> {
  let count = 0
  for (let from = 0; count < SAMPLE_ROWS; ) {
    const to = head.indexOf(0x0a, from)
    if (to < 0) return
    const value = parsed(Buffer.from(head.buffer, head.byteOffset + from, to - from).toString('utf8'))
    from = to + 1
    if (!isObject(value)) continue
    count++
    yield value
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** As CSV writes it. */
function textOf(value: unknown): string {
  return value === null || value === undefined || typeof value === 'object' ? '' : String(value)
}
