/** Infers the columns of a table from their values in the first rows: their kinds, and how their values are written. */
import { importance, type Notice, nearest } from '../../base/errors.js'
import { HeaderError } from '../errors.js'
import { listed, shortened } from '../formats/labels.js'
import type { ColumnKind, ColumnSchema } from '../types.js'
import { ANY_TEXT, COMMON_MISSING } from './categories.js'
import { type DecimalMark, numberOf } from './numbers.js'
import { ColumnProfile, type Counts, count, type MissingMarks, missingMarks, sum, type TimeProfile } from './profile.js'
import { columnRoles } from './schema.js'
import { DAY_MS, EPOCH_DAYS, TimeReader } from './times.js'

/** A column is numeric if at least this share of its values are numbers. */
const NUMERIC_SHARE = 0.95
/** A column of many numbers also is if at least this share are, or if the others are a few texts. */
const MOSTLY_NUMERIC = 0.8
const HALF_NUMERIC = 0.5
const MANY_NUMBERS = 10
const FEW_TEXTS = 10
/** A column is a time if at least this share of its values are. */
const TIME_SHARE = 0.8
/** Words per value, and share of distinct values, from which a column is text instead of a category. */
const TEXT_WORDS = 4
const TEXT_DISTINCT = 0.1
/** Mean length from which a value is a text in a script without spaces between words. */
const TEXT_CHARACTERS = 6
/** Share of distinct values, and number of values, from which a category identifies rows. */
const ID_DISTINCT = 0.9
const ID_VALUES = 50
/** Largest number of different texts of missing values that a column lists. */
const MAX_ODD = 100
/** Chinese, Japanese, Thai, Lao, Khmer, Burmese. */
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]/
/** Columns that pandas writes for the numbers of rows. */
const PANDAS_INDEX = /^__index_level_\d+__$/
const UNNAMED = /^(Unnamed: \d+)?$/

export interface ColumnHints {
  /** Columns to leave out. */
  readonly ignore?: readonly string[]
  /** Columns that are categories although their values look like numbers. */
  readonly categorical?: readonly string[]
  /** Columns that are numbers; if given, every other one is a category. */
  readonly columns?: readonly string[]
  /** Columns that have a role and are not features. */
  readonly weight?: string
  readonly id?: string
  readonly time?: string
  readonly na?: readonly string[]
  /** @default by the numbers of each column */
  readonly decimal?: '.' | ','
  /** What texts become. @default 'words' */
  readonly text?: 'words' | 'bigrams'
  /** With `none`, numbers become features as they are. @default 'none' */
  readonly scale?: 'none' | 'standard' | 'auto'
}

/** A column with what is known of its values in the first rows. */
export interface InferredColumn extends ColumnSchema {
  readonly missingShare: number
  /** Texts that count as missing and might mean something, with their shares. */
  readonly odd?: readonly (readonly [text: string, share: number])[]
  /** Whether numbers of the first rows have marks that may divide thousands. */
  readonly isGrouped?: boolean
  /** What could be wrong. */
  readonly remarks?: readonly Notice[]
}

/** The column alone. */
export function plainColumn(inferred: InferredColumn): ColumnSchema {
  const { missingShare: _missing, odd: _odd, remarks: _remarks, isGrouped: _isGrouped, ...column } = inferred
  return column
}

/** The values of each column in the first rows of a table, as texts; empty where a row has none. */
export type FirstRows = ReadonlyMap<string, readonly string[]>

/**
 * `inferColumns` of a table with its label.
 * @param hints whose names must be those of columns
 * @throws HeaderError
 */
export function inferTable(
  rows: FirstRows,
  hints: ColumnHints & { readonly label?: string },
  source: string
): readonly InferredColumn[] {
  const names = [...rows.keys()]
  const { label = 'label', categorical = [], ignore = [], columns = [] } = hints
  const roles = columnRoles.flatMap(role => hints[role] ?? [])
  const unknown = [...categorical, ...ignore, ...columns, ...roles].find(name => !rows.has(name))
  if (unknown !== undefined) throw new HeaderError(unknownColumn(unknown, names, source))
  const features = names.filter(name => name !== label)
  return inferColumns(
    features,
    features.map(name => rows.get(name) ?? []),
    hints
  )
}

/** The message about a name that no column has. */
function unknownColumn(name: string, names: readonly string[], source: string): string {
  const near = nearest(name, names)
  const advice = near === undefined ? 'check its spelling' : `did you mean "${near}"?`
  return `${source}: the columns are ${listed(names, 20)}, without "${name}": ${advice}`
}

/**
 * The features of a table, sorted by name, so that they do not depend on the order of a file's columns.
 * @param names of the columns, without the label
 * @param values of each column in the first rows
 */
export function inferColumns(
  names: readonly string[],
  values: readonly (readonly string[])[],
  hints: ColumnHints
): readonly InferredColumn[] {
  const missing = missingMarks(hints.na)
  const profiles = names.map((name, index) => new ColumnProfile(name, values[index], missing))
  const usual = hints.decimal ?? usualMark(profiles)
  const columns = profiles.map(profile => inferredColumn(profile, missing, usual, hints))
  return columns.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

/** How the values of known columns are written: marks of numbers and the order of dates. What the values leave open stays. */
export function inferNotation(
  columns: readonly ColumnSchema[],
  rows: FirstRows,
  { na, decimal }: Pick<ColumnHints, 'na' | 'decimal'>
): readonly InferredColumn[] {
  const missing = missingMarks(na)
  const isWritten = ({ kind, date }: ColumnSchema) => (kind === 'number' && !date) || kind === 'time' || date
  const profiles = columns.map(column => {
    const own = isWritten(column) ? rows.get(column.name) : undefined
    return own && new ColumnProfile(column.name, own, missing)
  })
  const usual = usualMark(profiles.filter(profile => profile !== undefined))
  return columns.map((column, index) => {
    const { decimal: known, order: knownOrder, ...rest } = column
    const profile = profiles[index]
    if (profile === undefined) return { ...column, missingShare: 0 }
    if (column.kind === 'time' || column.date) {
      const times = profile.times(knownOrder)
      const order = times?.order ?? knownOrder
      return {
        ...rest,
        ...(order && { order }),
        missingShare: 0,
        ...remarked(times ? orderRemarks(column.name, times) : [])
      }
    }
    const mark = profile.marks.decide(known ?? usual)
    const chosen = decimal ?? (profile.marks.hasMarks ? mark.decimal : known)
    const remarks = decimal === undefined ? markRemarks(profile, { ...mark, isGuess: false }) : []
    return { ...rest, ...markOf(chosen), missingShare: 0, isGrouped: profile.marks.hasGroups, ...remarked(remarks) }
  })
}

function remarked(remarks: readonly Notice[]): Pick<InferredColumn, 'remarks'> {
  return remarks.length > 0 ? { remarks } : {}
}

/** The mark as a part of a column, which has a decimal point otherwise. */
function markOf(decimal: DecimalMark | undefined): Pick<ColumnSchema, 'decimal'> {
  return decimal === undefined || decimal === '.' ? {} : { decimal }
}

/** The decimal mark where a column does not say it: a comma, if the other columns say so. */
function usualMark(profiles: readonly ColumnProfile[]): DecimalMark | undefined {
  const numeric = profiles.filter(({ numericShare }) => numericShare > HALF_NUMERIC).map(({ marks }) => marks)
  const hasComma = numeric.some(marks => marks.hasDecimalComma)
  return hasComma && !numeric.some(marks => marks.hasDecimalPoint) ? ',' : undefined
}

function inferredColumn(
  profile: ColumnProfile,
  missing: MissingMarks,
  usual: DecimalMark | undefined,
  hints: ColumnHints
): InferredColumn {
  const { name, values, present } = profile
  if (hints.ignore?.includes(name)) return { name, kind: 'ignored', missingShare: 0 }
  const role = columnRoles.find(one => hints[one] === name)
  const { kind, times, remarks: kindRemarks = [] } = kindOf(profile, role === undefined ? hints : {})
  const mark = profile.marks.decide(usual)
  const notation = {
    ...(kind === 'number' && markOf(hints.decimal ?? mark.decimal)),
    ...(times?.order && kind === 'time' && { order: times.order })
  }
  if (role !== undefined) return { name, kind, role, ...notation, missingShare: 0 }
  const isNamed = hints.categorical?.includes(name) || hints.columns?.includes(name)
  const reason = isNamed ? undefined : reasonToLeaveOut(profile, kind)
  if (reason !== undefined) return { name, kind: 'ignored', missingShare: 0, remarks: [reason] }
  const texts = oddTexts(profile, kind, times, missing)
  const marks = kind === 'number' ? profile.missingNumbers : marksOf(values, missing)
  const missed = sum(marks) + sum(texts)
  const odd = [...[...marks].filter(([text]) => !COMMON_MISSING.has(text)), ...texts].sort((a, b) => b[1] - a[1])
  const isIndicated = missed > 0 && (kind === 'number' || kind === 'time')
  const bigrams = kind === 'text' && hints.text === 'bigrams'
  const remarks = [
    ...kindRemarks,
    ...(kind === 'number' && hints.decimal === undefined ? markRemarks(profile, mark) : []),
    ...(kind === 'time' && times ? orderRemarks(name, times) : [])
  ]
  return {
    name,
    kind,
    ...notation,
    ...(kind === 'number' && { isGrouped: profile.marks.hasGroups }),
    ...(isIndicated && { missing: true }),
    ...(isIndicated &&
      odd.length > 0 && {
        na: odd.length > MAX_ODD ? [ANY_TEXT] : odd.flatMap(([text]) => (text === ANY_TEXT ? [] : [text]))
      }),
    ...(bigrams && { bigrams }),
    ...((hints.scale ?? 'none') !== 'none' && originOfColumn(profile, kind, notation)),
    missingShare:
      values.length === 0
        ? 0
        : kind === 'category' || kind === 'text'
          ? 1 - present.length / values.length
          : missed / values.length,
    ...(isIndicated && odd.length > 0 && { odd: odd.map(([text, number]) => [text, number / values.length] as const) }),
    ...remarked(remarks)
  }
}

/** The origin of a number or a time whose values differ little for their size. */
function originOfColumn(
  { present }: ColumnProfile,
  kind: ColumnKind,
  { decimal, order }: Pick<ColumnSchema, 'decimal' | 'order'>
): Pick<ColumnSchema, 'origin'> {
  let origin: number | undefined
  if (kind === 'number') {
    origin = originOf(present.map(value => numberOf(value, decimal)).filter(value => value !== undefined))
  } else if (kind === 'time') {
    const reader = new TimeReader(order)
    const days = present.flatMap(value => (reader.readText(value) && reader.hasDate ? [reader.utc / DAY_MS] : []))
    origin = originOf(days, EPOCH_DAYS)
  }
  return origin === undefined ? {} : { origin }
}

/** The marks of missing values of a column that is no number. */
function marksOf(values: readonly string[], { other }: MissingMarks): Counts {
  const counts: Counts = new Map()
  for (const value of values) if (other.has(value)) count(counts, value)
  return counts
}

/** The texts of a number or a time that are none, which count as missing. */
function oddTexts(
  profile: ColumnProfile,
  kind: ColumnKind,
  times: TimeProfile | undefined,
  missing: MissingMarks
): Counts {
  if (kind === 'number') return profile.texts
  if (kind !== 'time' || times === undefined) return new Map()
  const counts: Counts = new Map()
  for (const value of profile.notTimes(times.order)) {
    if (!missing.other.has(value)) count(counts, value)
  }
  return counts
}

interface FoundKind {
  readonly kind: ColumnKind
  readonly times?: TimeProfile
  readonly remarks?: readonly Notice[]
}

function kindOf(profile: ColumnProfile, { categorical, columns }: ColumnHints): FoundKind {
  const { name, present } = profile
  if (categorical?.includes(name)) return { kind: 'category' }
  if (columns !== undefined) return { kind: columns.includes(name) ? 'number' : 'category' }
  const moments = profile.momentsAs
  if (moments !== undefined) {
    const what = moments === 'digits' ? 'dates' : 'times since 1970'
    const line = `the numbers of the column "${name}" are read as ${what}: give --columns with all numbers if that is wrong`
    return { kind: 'time', times: profile.times(), remarks: [{ line, importance: importance.guess }] }
  }
  if (profile.isCode) {
    const line = `the column "${name}" has leading zeros, so it is a category: give --columns with all numbers if it is a number`
    return { kind: 'category', remarks: [{ line, importance: importance.guess }] }
  }
  // Nothing is known of a column without values. As a number it takes one feature.
  if (isNumeric(profile)) return { kind: 'number' }
  const times = profile.times()
  if (times !== undefined && times.times >= TIME_SHARE * present.length) return { kind: 'time', times }
  return { kind: isText(present) ? 'text' : 'category' }
}

function isNumeric({ marks, numericShare, present, texts }: ColumnProfile): boolean {
  if (numericShare >= NUMERIC_SHARE) return true
  if (numericShare < HALF_NUMERIC || (numericShare < MOSTLY_NUMERIC && texts.size > FEW_TEXTS)) return false
  if (marks.numbers <= MANY_NUMBERS) return false
  return new Set(present.filter(value => numberOf(value) !== undefined)).size > MANY_NUMBERS
}

function isText(present: readonly string[]): boolean {
  let [words, characters, unspaced] = [0, 0, 0]
  for (const value of present) {
    words += value.split(/\s+/).length
    characters += value.length
    if (UNSPACED.test(value)) unspaced++
  }
  const isLong = unspaced > HALF_NUMERIC * present.length && characters >= TEXT_CHARACTERS * present.length
  return (isLong || words >= TEXT_WORDS * present.length) && new Set(present).size >= TEXT_DISTINCT * present.length
}

/** Why a column is no feature, although no option says so. */
function reasonToLeaveOut({ name, present }: ColumnProfile, kind: ColumnKind): Notice | undefined {
  const isIndex = PANDAS_INDEX.test(name) || (UNNAMED.test(name) && kind === 'number' && isConsecutive(present))
  if (isIndex) {
    const line = `the column "${name}" numbers the rows and is left out: give a schema to use it`
    return { line, importance: importance.leftOut }
  }
  if (kind !== 'category' || present.length < ID_VALUES) return undefined
  const distinct = new Set(present).size
  if (distinct < ID_DISTINCT * present.length) return undefined
  const line = `the column "${name}" has ${distinct} different values in ${present.length} rows and is left out as an identifier: give --categorical ${name} to use it`
  return { line, importance: importance.leftOut }
}

function isConsecutive(present: readonly string[]): boolean {
  const first = Number(present[0])
  return Number.isInteger(first) && present.every((value, index) => Number(value) === first + index)
}

function markRemarks(
  { name, marks, present }: ColumnProfile,
  { decimal, isGuess }: { readonly decimal: DecimalMark | undefined; readonly isGuess: boolean }
): Notice[] {
  if (marks.contradictions > 0) {
    const line = `the column "${name}" has a decimal comma in some numbers and a decimal point in others (${marks.contradictions} of ${marks.numbers}): each is read as it is written`
    return [{ line, importance: importance.contradiction }]
  }
  if (!isGuess) return []
  const example = present.find(value => marks.isAmbiguous(value)) ?? ''
  const [mark, other] = example.includes(',') ? [',', '.'] : ['.', ',']
  const isDecimal = decimal === 'both' || (decimal ?? '.') === mark
  const line = `"${shortened(example)}" in the column "${name}" is read as ${numberOf(example, decimal)}: give --decimal ${isDecimal ? other : mark} if that is wrong`
  return [{ line, importance: importance.guess }]
}

const ORDERS = { mdy: 'month/day/year', dmy: 'day/month/year', ymd: 'year/month/day' }

function orderRemarks(name: string, { order, isGuess, contradictions, example, times }: TimeProfile): Notice[] {
  if (order === undefined) return []
  if (contradictions > 0) {
    const line = `${contradictions} of ${times} dates of the column "${name}" are not in the order ${ORDERS[order]} of the others: each is read as it can be`
    return [{ line, importance: importance.contradiction }]
  }
  if (!isGuess) return []
  const line = `dates such as ${shortened(example ?? '')} in the column "${name}" are read as ${ORDERS[order]}: give a schema with another order of the column if that is wrong`
  return [{ line, importance: importance.guess }]
}

/** The notices about columns. */
export function columnNotices(columns: readonly InferredColumn[], source: string): readonly Notice[] {
  const notices = columns.flatMap(({ remarks = [] }) =>
    remarks.map(one => ({ ...one, line: `${source}: ${one.line}` }))
  )
  const odd = columns.flatMap(({ name, odd: texts = [] }) =>
    texts.slice(0, 3).map(([text, share]) => `"${shortened(text)}" in ${name} (${(100 * share).toFixed(1)} %)`)
  )
  if (odd.length > 0) {
    const line = `${source}: these values count as missing: ${listed(odd, 6)}`
    notices.push({ line, importance: importance.leftOut })
  }
  return notices
}

/** Mean in deviations from which a float32 number shows too little of a difference. */
const FAR = 1024

/**
 * A short number near the mean, if the numbers are far from `usual` for their deviation.
 * @param usual what is subtracted otherwise
 * @returns undefined if that suffices
 */
export function originOf(numbers: readonly number[], usual = 0): number | undefined {
  if (numbers.length === 0) return undefined
  const mean = numbers.reduce((sum, number) => sum + (number - usual), 0) / numbers.length
  const squares = numbers.reduce((sum, number) => sum + (number - usual - mean) ** 2, 0)
  const deviation = Math.sqrt(squares / numbers.length)
  if (Math.abs(mean) < FAR || Math.abs(mean) < FAR * deviation) return undefined
  if (deviation === 0) return usual + mean
  // A multiple of a power of two has few digits.
  const step = 2 ** Math.floor(Math.log2(16 * deviation))
  return usual + step * Math.round(mean / step)
}
