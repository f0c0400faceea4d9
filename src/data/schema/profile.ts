/** What the values of a column are in the first rows: numbers, times, marks of missing values, or other texts. */
import { MissingValues } from './categories.js'
import { MarkEvidence } from './numbers.js'
import { type DateOrder, TimeReader } from './times.js'

/** Values that are tried before a column is no column of times. */
const TRIED = 50
/** The largest share of successive times out of order in a column that is in the order of time. */
const DISORDER = 0.05
/** The smallest share of values with leading zeros in a column of codes whose lengths differ. */
const CODE_SHARE = 0.005
const DAY_MS = 86_400_000
/** Numbers are times since 1970 if all of them are in these years, and over more than some days. */
const FIRST_MOMENT = Date.UTC(2000, 0, 1)
const LAST_MOMENT = Date.UTC(2040, 0, 1)
const MIN_SPAN_MS = 2 * DAY_MS
/** Least number of numbers that are taken for dates or times since 1970. */
const MIN_MOMENTS = 10

/** Recognises missing values: those of numbers are more than those of other columns. */
export interface MissingMarks {
  readonly number: MissingValues
  readonly other: MissingValues
}

export function missingMarks(na: readonly string[] | undefined): MissingMarks {
  return { number: new MissingValues(na, 'number'), other: new MissingValues(na) }
}

/** Values by their number. */
export type Counts = Map<string, number>

export interface TimeProfile {
  /** Values that are times. */
  readonly times: number
  /** The order of their dates, if it matters. */
  readonly order?: DateOrder
  /** Whether another order fits as well, and values that only another order fits. */
  readonly isGuess: boolean
  readonly contradictions: number
  /** A date whose order matters. */
  readonly example?: string
}

export class ColumnProfile {
  readonly marks = new MarkEvidence()
  /** Values that are neither numbers nor missing as such. */
  readonly texts: Counts = new Map()
  /** Missing values of a number. */
  readonly missingNumbers: Counts = new Map()
  /** Values that are not missing in a column of other kinds. */
  readonly present: readonly string[]

  constructor(
    readonly name: string,
    readonly values: readonly string[],
    missing: MissingMarks
  ) {
    const present: string[] = []
    for (const value of values) {
      if (this.marks.add(value)) {
        present.push(value)
        continue
      }
      if (!missing.other.has(value)) present.push(value)
      count(missing.number.has(value) ? this.missingNumbers : this.texts, value)
    }
    this.present = present
  }

  /** Share of numbers, of the values that are not missing as numbers. */
  get numericShare(): number {
    const all = this.marks.numbers + sum(this.texts)
    return all === 0 ? 1 : this.marks.numbers / all
  }

  /** The times among the values; undefined if there are none. */
  times(given?: DateOrder): TimeProfile | undefined {
    const reader = new TimeReader(given)
    let times = 0
    let ordered = 0
    let example: string | undefined
    const fitting = new Map<DateOrder, number>()
    for (const [index, value] of this.present.entries()) {
      if (index === TRIED && times === 0) return undefined
      if (!reader.readText(value)) continue
      times++
      if (reader.orders.length === 0) continue
      ordered++
      if (reader.orders.length > 1) example ??= value
      for (const order of reader.orders) fitting.set(order, (fitting.get(order) ?? 0) + 1)
    }
    if (times === 0) return undefined
    if (ordered === 0) return { times, isGuess: false, contradictions: 0 }
    const best = Math.max(...fitting.values())
    const orders = [...fitting.keys()].filter(order => fitting.get(order) === best)
    const contradictions = ordered - best
    if (orders.length === 1) return { times, order: orders[0], isGuess: false, contradictions, example }
    if (given !== undefined && orders.includes(given)) {
      return { times, order: given, isGuess: false, contradictions, example }
    }
    // Rows are often in the order of time, which only one order of the parts shows.
    const ranked = orders.map(order => ({ order, disorder: this.#disorder(order) }))
    const [first, second] = ranked.sort((a, b) => a.disorder - b.disorder)
    if (first.disorder < DISORDER && 4 * first.disorder < second.disorder) {
      return { times, order: first.order, isGuess: false, contradictions, example }
    }
    return { times, order: orders[0], isGuess: true, contradictions, example }
  }

  /** The values that are no times. */
  notTimes(order: DateOrder | undefined): readonly string[] {
    const reader = new TimeReader(order)
    return this.present.filter(value => !reader.readText(value))
  }

  /** The share of successive times that are not in the order of the others. */
  #disorder(order: DateOrder): number {
    const reader = new TimeReader(order)
    let [last, ups, downs] = [Number.NaN, 0, 0]
    for (const value of this.present) {
      if (!reader.readText(value)) continue
      if (reader.local > last) ups++
      if (reader.local < last) downs++
      last = reader.local
    }
    return ups + downs === 0 ? 1 : Math.min(ups, downs) / (ups + downs)
  }

  /** What numbers are that are dates of 8, 12 or 14 digits, or times since 1970; undefined for others. */
  get momentsAs(): 'digits' | 'since 1970' | undefined {
    const { present } = this
    if (present.length < MIN_MOMENTS || this.marks.numbers < present.length) return undefined
    const reader = new TimeReader()
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    const { length } = present[0]
    const isDigits = [8, 12, 14].includes(length) && present.every(value => isDigitDate(value, length))
    for (const value of present) {
      if (!/^\d{8,19}(\.\d+)?$/.test(value) || !reader.readText(value)) return undefined
      least = Math.min(least, reader.utc)
      most = Math.max(most, reader.utc)
    }
    if (isDigits) return most > least ? 'digits' : undefined
    return least >= FIRST_MOMENT && most < LAST_MOMENT && most - least >= MIN_SPAN_MS ? 'since 1970' : undefined
  }

  /** Whether the values are digits with leading zeros, as codes are: all of equal length, or some of at least three digits. */
  get isCode(): boolean {
    const { present } = this
    const { length } = present[0] ?? ''
    if (!present.every(value => /^\d+$/.test(value))) return false
    const zeros = present.filter(value => value.length > 2 && value.startsWith('0'))
    if (present.every(value => value.length === length)) return zeros.length > 0
    return zeros.length >= CODE_SHARE * present.length && zeros.some(value => /[1-9]/.test(value))
  }
}

/** Whether digits are a date, such as 20240229, or a date and time. */
function isDigitDate(value: string, length: number): boolean {
  if (value.length !== length || !/^(19|20)\d+$/.test(value)) return false
  const [month, day, hour, minute] = [4, 6, 8, 10].map(at => Number(value.slice(at, at + 2)))
  return month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour < 24 && minute < 60
}

export function count(counts: Counts, value: string): void {
  counts.set(value, (counts.get(value) ?? 0) + 1)
}

export function sum(counts: Counts): number {
  let all = 0
  for (const number of counts.values()) all += number
  return all
}
