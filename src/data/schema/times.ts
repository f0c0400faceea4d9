/**
 * Dates and times as programs and people write them: ISO 8601 in all forms, dates with slashes or points in the order of the column,
 * names of months, 12-hour clocks, times of day alone, and numbers of seconds or smaller units since 1970.
 */
import type { DateOrder } from './table-schema.js'

/** The order of day and month in a date like 02/03/2024, or of all parts in one like 02/03/24. */
export type { DateOrder }

/** A date without its time. */
interface Day {
  /** Midnight, in milliseconds since 1970 as if in UTC. */
  readonly midnight: number
  /** The orders in which its numbers are a date, if it depends on the order. */
  readonly orders: readonly DateOrder[]
}

const MINUTE_MS = 60_000
export const DAY_MS = 86_400_000
/** Days from 1970 to 2000, and days of ten years: the origin and the unit of the position in time. */
export const EPOCH_DAYS = 10_957
export const YEARS_10 = 3652.5
/** Days after which the parts of a time recur. */
export const MONTH_CYCLE = 365
export const WEEK_CYCLE = 7
export const DAY_CYCLE = 1
/** Dates of numbers alone are in these years. */
const FIRST_YEAR = 1900
const LAST_YEAR = 2100
/** Longest text that may be a time. */
const MAX_LENGTH = 64

const ZONES: Readonly<Record<string, number>> = {
  Z: 0,
  UTC: 0,
  GMT: 0,
  WET: 0,
  CET: 60,
  MEZ: 60,
  CEST: 120,
  MESZ: 120,
  EET: 120,
  EEST: 180,
  MSK: 180,
  IST: 330,
  JST: 540,
  EST: -300,
  EDT: -240,
  CST: -360,
  CDT: -300,
  MST: -420,
  MDT: -360,
  PST: -480,
  PDT: -420
}
const ZONE = new RegExp(
  `\\s?(?:(${Object.keys(ZONES).join('|')})|(?<=\\d|UTC|GMT)\\s?([+-])(\\d{2})(?::?(\\d{2}))?)(?:\\s?\\[[\\w/+-]+\\])?$`
)
/** 18:30, 18:30:05.250, 6:30 PM. */
const CLOCK = /(?:^|[T\s,:]\s*)(\d{1,2})[:h](\d{2})(?::(\d{2})(?:[.,:](\d{1,9}))?)?(?:\s*([ap])\.?\s?m\.?)?$/i
/** 6 PM. */
const HOUR = /(?:^|[T\s,]\s*)(\d{1,2})\s*([ap])\.?\s?m\.?$/i
/** The time in 20240229T183005Z, or the hour in 2024-02-29T18. */
const COMPACT_CLOCK = /(?<=^\d{8})[T\s]?(\d{2})(\d{2})(?:(\d{2})(?:[.,](\d{1,9}))?)?$|(?<=\d)T(\d{2})$/
const MONTHS: Readonly<Record<string, number>> = {
  jan: 1,
  feb: 2,
  mar: 3,
  mär: 3,
  mrz: 3,
  apr: 4,
  may: 5,
  mai: 5,
  jun: 6,
  jul: 7,
  aug: 8,
  sep: 9,
  okt: 10,
  oct: 10,
  nov: 11,
  dec: 12,
  dez: 12
}
const WEEKDAY = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+/i

const YEAR_FIRST = /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})$/
const YEAR_LAST = /^(\d{1,2})([-/.])\s?(\d{1,2})\2\s?(\d{4}|\d{2})$/
const NAMED_MONTH = /^(\d{1,2})(?:st|nd|rd|th|\.)?[-/\s]*([a-zä]{3,9})\.?[-/\s,]*(\d{4}|\d{2})$/i
const MONTH_FIRST = /^([a-zä]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})$/i
const YEAR_MONTH = /^(\d{4})[-/](\d{2})$/
const WEEK = /^(\d{4})-?W(\d{2})(?:-?([1-7]))?$/
const ORDINAL = /^(\d{4})-(\d{3})$/
/** Thu Feb 29 18:30:00 2024, perhaps with a zone before the year. */
const CTIME = /^([a-z]{3} +\d{1,2}) +([\d:.]+)(?: +([A-Z]{3,4}))? +(\d{4})$/i

/** Reads times, the faster if successive ones have the same date. */
export class TimeReader {
  /** The time read last, in milliseconds since 1970: as the clock shows it, and in UTC. Only the time of day without a date. */
  local = Number.NaN
  utc = Number.NaN
  hasDate = false
  hasClock = false
  /** The orders in which the last date is one; empty if it does not depend on the order. */
  orders: readonly DateOrder[] = []
  readonly #order: DateOrder | undefined
  /** The last date as text, and as a number of eight digits. */
  #text = ''
  #day: Day | undefined
  #date = Number.NaN
  #midnight = Number.NaN

  /** @param order of ambiguous dates @default month first with slashes, otherwise day first */
  constructor(order?: DateOrder) {
    this.#order = order
  }

  /** Reads the bytes in [from, to). @returns whether they are a time */
  read(bytes: Uint8Array, from: number, to: number): boolean {
    if (this.#iso(bytes, from, to)) return true
    if (to - from > MAX_LENGTH || to <= from) return false
    return this.readText(Buffer.from(bytes.subarray(from, to)).toString('utf8'))
  }

  readText(given: string): boolean {
    const digits = /^[+-]?\d+(?:\.\d+)?$/.test(given)
    if (digits) return this.#number(given)
    let text = given.trim()
    // A time has a digit in it.
    if (text.length > MAX_LENGTH || !/\d/.test(text)) return false
    if (/[^ -~äÄ]/.test(text))
      text = text
        .normalize('NFKC')
        .replace(/[年月]/g, '-')
        .replace(/日/g, ' ')
        .trim()
    text = text.replace(WEEKDAY, '').replace(CTIME, '$1 $4 $2 $3').trim()
    const zone = ZONE.exec(text)
    let offset: number | undefined
    if (zone !== null && zone.index > 0) {
      const [, name, sign, hours, minutes = '0'] = zone
      const isOffset = sign !== undefined && /[:T]\d|\d{8}T?\d/.test(text.slice(0, zone.index))
      if (name !== undefined || isOffset) {
        offset = name !== undefined ? ZONES[name] : Number(`${sign}1`) * (60 * Number(hours) + Number(minutes))
        text = text
          .slice(0, zone.index)
          .replace(/\s?(?:UTC|GMT)$/, '')
          .trimEnd()
      }
    }
    const clock = clockOf(text)
    if (clock !== undefined && !Number.isFinite(clock.ms)) return false
    const date = clock === undefined ? text : clock.date
    if (date === '' || date === undefined) {
      if (clock === undefined) return false
      this.#set(clock.ms, offset, false, true)
      this.orders = []
      return true
    }
    if (date !== this.#text) {
      this.#text = date
      this.#day = dayOf(date, this.#order)
    }
    if (this.#day === undefined) return false
    this.orders = this.#day.orders
    this.#set(this.#day.midnight + (clock?.ms ?? 0), offset, true, clock !== undefined)
    return true
  }

  #set(local: number, offset: number | undefined, hasDate: boolean, hasClock: boolean): void {
    this.local = local
    this.utc = local - (offset ?? 0) * MINUTE_MS
    this.hasDate = hasDate
    this.hasClock = hasClock
  }

  /** Digits alone: a date of 8, 12 or 14 digits, or a time since 1970. */
  #number(text: string): boolean {
    this.orders = []
    if (/^\d+$/.test(text) && (text.length === 8 || text.length === 12 || text.length === 14)) {
      const day = dayOf(text.slice(0, 8), undefined)
      const parts = /^(\d{2})(\d{2})(\d{2})?$/.exec(text.slice(8))
      const ms = parts === null ? 0 : clockMs(parts[1], parts[2], parts[3])
      if (day !== undefined && Number.isFinite(ms)) {
        this.#set(day.midnight + ms, undefined, true, text.length > 8)
        return true
      }
    }
    const moment = momentOfNumber(Number(text))
    if (Number.isNaN(moment)) return false
    this.#set(moment, undefined, true, true)
    return true
  }

  /** `YYYY-MM-DD hh:mm:ss`, perhaps with a zone of whole hours, or such a date alone, of which the last one is kept. */
  #iso(bytes: Uint8Array, from: number, to: number): boolean {
    const length = to - from
    if (length < DATE_LENGTH || bytes[from + 4] !== DASH || bytes[from + 7] !== DASH) return false
    const isDate = length === DATE_LENGTH
    if (!isDate && length < DATE_LENGTH + 9) return false
    const year = number(bytes, from, from + 4)
    const month = number(bytes, from + 5, from + 7)
    const day = number(bytes, from + 8, from + DATE_LENGTH)
    if (year < 0 || month < 0 || day < 0) return false
    const date = 1e4 * year + 100 * month + day
    if (date !== this.#date) {
      this.#midnight = midnightOf(year, month, day)
      this.#date = date
    }
    if (Number.isNaN(this.#midnight)) return false
    if (isDate) {
      this.orders = []
      this.#set(this.#midnight, undefined, true, false)
      return true
    }
    const at = from + DATE_LENGTH
    if ((bytes[at] !== SPACE && bytes[at] !== LETTER_T) || bytes[at + 3] !== COLON || bytes[at + 6] !== COLON)
      return false
    const hour = number(bytes, at + 1, at + 3)
    const minute = number(bytes, at + 4, at + 6)
    const second = number(bytes, at + 7, at + 9)
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return false
    const rest = length - DATE_LENGTH - 9
    const end = at + 9
    if (rest !== 0 && !(rest === 1 && bytes[end] === 0x5a) && !(rest === 3 && isUtcHour(bytes, end))) return false
    this.orders = []
    this.#set(this.#midnight + 1000 * (3600 * hour + 60 * minute + second), undefined, true, true)
    return true
  }
}

const DATE_LENGTH = 'YYYY-MM-DD'.length
const DASH = 0x2d
const COLON = 0x3a
const SPACE = 0x20
const LETTER_T = 0x54
const ZERO = 0x30

/** The zone `+00`. */
function isUtcHour(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0x2b && bytes[at + 1] === ZERO && bytes[at + 2] === ZERO
}

/** The number that only digits write; −1 for other bytes. */
function number(bytes: Uint8Array, from: number, to: number): number {
  let value = 0
  for (let i = from; i < to; i++) {
    const digit = bytes[i] - ZERO
    if (digit < 0 || digit > 9) return -1
    value = 10 * value + digit
  }
  return value
}

/** The time of day at the end of a text, and what is before it; undefined without one. NaN if it is none. */
function clockOf(text: string): { readonly ms: number; readonly date: string } | undefined {
  const clock = CLOCK.exec(text)
  if (clock !== null) {
    const [, hours, minutes, seconds, fraction, half] = clock
    return { ms: clockMs(hours, minutes, seconds, fraction, half), date: text.slice(0, clock.index).trimEnd() }
  }
  const hour = HOUR.exec(text)
  if (hour !== null)
    return { ms: clockMs(hour[1], '0', '0', undefined, hour[2]), date: text.slice(0, hour.index).trimEnd() }
  const compact = COMPACT_CLOCK.exec(text)
  if (compact === null) return undefined
  const [, hours, minutes, seconds, fraction, alone] = compact
  return { ms: clockMs(alone ?? hours, minutes ?? '0', seconds, fraction), date: text.slice(0, compact.index) }
}

/** Milliseconds since midnight; NaN if there is no such time. */
function clockMs(hours: string, minutes: string, seconds = '0', fraction = '0', half?: string): number {
  let hour = Number(hours)
  if (half !== undefined) {
    if (hour < 1 || hour > 12) return Number.NaN
    hour = (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0)
  }
  const [minute, second] = [Number(minutes), Number(seconds)]
  const isEnd = hour === 24 && minute === 0 && second === 0
  // A leap second counts as the second before it.
  if ((hour > 23 && !isEnd) || minute > 59 || second > 60) return Number.NaN
  return 1000 * (3600 * hour + 60 * minute + Math.min(59, second)) + Math.floor(Number(`0.${fraction}`) * 1e6) / 1000
}

/** Midnight of a date; NaN if there is none. */
function midnightOf(year: number, month: number, day: number): number {
  if (month < 1 || month > 12 || day < 1 || day > 31) return Number.NaN
  const date = new Date(Date.UTC(year, month - 1, day))
  if (year < 100) date.setUTCFullYear(year)
  return date.getUTCDate() === day ? Number(date) : Number.NaN
}

function dayOf(text: string, order: DateOrder | undefined): Day | undefined {
  const fixed = fixedDay(text)
  if (fixed !== undefined) return Number.isNaN(fixed) ? undefined : { midnight: fixed, orders: [] }
  const parts = YEAR_LAST.exec(text)
  if (parts === null) return undefined
  const [, first, separator, second, third] = parts
  const found = new Map<DateOrder, number>()
  const [a, b] = [Number(first), Number(second)]
  const add = (one: DateOrder, midnight: number) => {
    if (!Number.isNaN(midnight)) found.set(one, midnight)
  }
  if (separator === '/') {
    add('mdy', midnightOf(fullYear(third), a, b))
    add('dmy', midnightOf(fullYear(third), b, a))
  } else {
    add('dmy', midnightOf(fullYear(third), b, a))
    add('mdy', midnightOf(fullYear(third), a, b))
  }
  if (third.length === 2 && first.length === 2) add('ymd', midnightOf(fullYear(first), b, Number(third)))
  const [usual] = found
  if (usual === undefined) return undefined
  return { midnight: (order && found.get(order)) ?? usual[1], orders: [...found.keys()] }
}

/** Midnight of a date whose notation has one meaning; NaN if there is no such date, undefined for another notation. */
function fixedDay(text: string): number | undefined {
  const yearFirst = YEAR_FIRST.exec(text)
  if (yearFirst !== null) return midnightOf(Number(yearFirst[1]), Number(yearFirst[3]), Number(yearFirst[4]))
  if (/^\d{8}$/.test(text)) {
    const year = Number(text.slice(0, 4))
    const isYear = year >= FIRST_YEAR && year < LAST_YEAR
    return isYear ? midnightOf(year, Number(text.slice(4, 6)), Number(text.slice(6))) : Number.NaN
  }
  const named = NAMED_MONTH.exec(text)
  if (named !== null) return midnightOf(fullYear(named[3]), monthOf(named[2]), Number(named[1]))
  const monthFirst = MONTH_FIRST.exec(text)
  if (monthFirst !== null) return midnightOf(Number(monthFirst[3]), monthOf(monthFirst[1]), Number(monthFirst[2]))
  const yearMonth = YEAR_MONTH.exec(text)
  if (yearMonth !== null) return midnightOf(Number(yearMonth[1]), Number(yearMonth[2]), 1)
  const ordinal = ORDINAL.exec(text)
  if (ordinal !== null) {
    const midnight = Date.UTC(Number(ordinal[1]), 0, Number(ordinal[2]))
    return Number(ordinal[2]) > 0 && new Date(midnight).getUTCFullYear() === Number(ordinal[1]) ? midnight : Number.NaN
  }
  const week = WEEK.exec(text)
  if (week === null) return undefined
  const [year, number, weekday] = [Number(week[1]), Number(week[2]), Number(week[3] ?? '1')]
  // Week 1 has January 4.
  const fourth = Date.UTC(year, 0, 4)
  const monday = fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * DAY_MS
  return number >= 1 && number <= 53 ? monday + (7 * (number - 1) + weekday - 1) * DAY_MS : Number.NaN
}

/** Two digits are a year from 1969 to 2068, as in POSIX. */
function fullYear(text: string): number {
  const year = Number(text)
  return text.length > 2 ? year : year + (year < 69 ? 2000 : 1900)
}

function monthOf(name: string): number {
  return MONTHS[name.slice(0, 3).toLowerCase()] ?? Number.NaN
}

/** Numbers below these are times since 1970 in seconds, milliseconds and microseconds, others in nanoseconds. */
const UNITS = [
  [1e11, 1000],
  [1e14, 1],
  [1e17, 1e-3],
  [Number.POSITIVE_INFINITY, 1e-6]
] as const

/** The time of a number of a usual unit, in milliseconds since 1970; NaN if it is out of the range of dates. */
function momentOfNumber(time: number): number {
  for (const [limit, factor] of UNITS) {
    if (Math.abs(time) < limit) return Math.abs(factor * time) <= 8.64e15 ? factor * time : Number.NaN
  }
  return Number.NaN
}

/** Names of the features of a time, in their order. */
export const timeFeatureNames: readonly string[] = [
  'year',
  'month (sine)',
  'month (cosine)',
  'weekday (sine)',
  'weekday (cosine)',
  'hour (sine)',
  'hour (cosine)'
]

/** The parts of a time, as shares of a year, a week and a day. */
export class TimeParts {
  month = 0
  weekday = 0
  hour = 0
  #day = Number.NaN

  /** @param local in milliseconds since 1970, or since midnight */
  set(local: number): void {
    const day = Math.floor(local / DAY_MS)
    const minutes = Math.floor((local - day * DAY_MS) / MINUTE_MS)
    this.hour = minutes / 1440
    if (day === this.#day) return
    this.#day = day
    const date = new Date(day * DAY_MS)
    this.month = date.getUTCMonth() / 12
    this.weekday = date.getUTCDay() / 7
  }
}
