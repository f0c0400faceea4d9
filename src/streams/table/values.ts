/** The values of a table's fields: missing ones, times and words. */
import { murmur3 } from '../hash.js'

/** Texts of missing values, besides the empty one. */
export const DEFAULT_NA: readonly string[] = ['NA', 'N/A', 'NaN', 'nan', 'null', 'NULL', 'None', '?']

/** Recognises missing values in bytes. */
export class MissingValues {
  readonly #texts: readonly Uint8Array[]
  readonly #longest: number
  /** Whether a text starts with the byte. */
  readonly #starts = new Uint8Array(256)

  constructor(texts: readonly string[] = DEFAULT_NA) {
    this.#texts = texts.map(text => Buffer.from(text))
    this.#longest = Math.max(0, ...this.#texts.map(text => text.length))
    for (const [first] of this.#texts) this.#starts[first] = 1
  }

  includes(bytes: Uint8Array, from: number, to: number): boolean {
    const length = to - from
    if (length === 0) return true
    if (length > this.#longest || this.#starts[bytes[from]] === 0) return false
    for (const text of this.#texts) {
      if (text.length !== length) continue
      let i = 0
      while (i < length && text[i] === bytes[from + i]) i++
      if (i === length) return true
    }
    return false
  }
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

const TIME =
  /^(\d{4})([-/])(\d{1,2})\2(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?$/

/**
 * The features of a date, `2024-02-29` or `2024/2/29`, with or without a time of day (ISO 8601): years since 2000 in tens, and
 * sine and cosine of month, weekday and hour. The time zone is not applied, because the local time is what matters.
 * @returns undefined if the text is no date
 */
export function timeFeatures(text: string): readonly number[] | undefined {
  const match = TIME.exec(text)
  if (match === null) return undefined
  const [year, month, day, hour = 0, minute = 0] = [1, 3, 4, 5, 6].map(group => Number(match[group] ?? 0))
  const date = new Date(Date.UTC(year, month - 1, day))
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || minute > 59) return undefined
  const inYear = (Number(date) - Date.UTC(year, 0, 1)) / 86_400_000 / 366
  return [
    (year + inYear - 2000) / 10,
    ...circle((month - 1) / 12),
    ...circle(date.getUTCDay() / 7),
    ...circle((hour + minute / 60) / 24)
  ]
}

/**
 * A moment for comparisons: milliseconds of a date, with its time zone if it has one, or any number.
 * @returns undefined for other texts
 */
export function timeOf(text: string): number | undefined {
  if (text !== '' && Number.isFinite(Number(text))) return Number(text)
  const match = TIME.exec(text)
  if (match === null || timeFeatures(text) === undefined) return undefined
  const [year, month, day, hour = 0, minute = 0, second = 0] = [1, 3, 4, 5, 6, 7].map(group =>
    Number(match[group] ?? 0)
  )
  const [, sign, zoneHours, zoneMinutes] = /^([+-])(\d{2}):?(\d{2})$/.exec(match[8] ?? '') ?? []
  const zone = sign === undefined ? 0 : Number(`${sign}1`) * (60 * Number(zoneHours) + Number(zoneMinutes))
  return Date.UTC(year, month - 1, day, hour, minute - zone, second)
}

/** Numbers below these are times since 1970 in seconds, milliseconds and microseconds, others in nanoseconds. */
const UNITS = [
  [1e11, 1000],
  [1e14, 1],
  [1e17, 1e-3],
  [Number.POSITIVE_INFINITY, 1e-6]
] as const

/** The time that a text means, in milliseconds since 1970: a date, in UTC if it has no time zone, or a number of a usual unit. */
export function momentOf(text: string): number | undefined {
  const time = timeOf(text)
  if (time === undefined || !Number.isFinite(Number(text))) return time
  const moment = momentOfNumber(time)
  return Number.isNaN(moment) ? undefined : moment
}

/** NaN for a number that is out of the range of dates. */
function momentOfNumber(time: number): number {
  for (const [most, factor] of UNITS) {
    if (Math.abs(time) < most) return Math.abs(factor * time) <= 8.64e15 ? factor * time : Number.NaN
  }
  return Number.NaN
}

const DATE_LENGTH = 'YYYY-MM-DD'.length

/** `momentOf` for the times of successive rows, faster for those of one day and for whole numbers. */
export class Moments {
  /** The last date, as a number of eight digits, and its moment. */
  #date = Number.NaN
  #midnight = Number.NaN

  /** The time of the bytes in [from, to); NaN if they are none. */
  at(bytes: Uint8Array, from: number, to: number): number {
    const length = to - from
    if (length >= 9 && length <= 15) {
      const number = digits(bytes, from, to)
      if (number >= 0) return momentOfNumber(number)
    }
    const time = this.#atDate(bytes, from, to)
    return Number.isNaN(time)
      ? (momentOf(Buffer.from(bytes.subarray(from, to)).toString('latin1')) ?? Number.NaN)
      : time
  }

  /** The moment of `YYYY-MM-DD hh:mm:ss` or such a date alone; NaN for others. */
  #atDate(bytes: Uint8Array, from: number, to: number): number {
    const isDate = to - from === DATE_LENGTH
    const isTime = to - from === DATE_LENGTH + 9
    if (!(isDate || isTime) || bytes[from + 4] !== DASH || bytes[from + 7] !== DASH) return Number.NaN
    const year = digits(bytes, from, from + 4)
    const month = digits(bytes, from + 5, from + 7)
    const day = digits(bytes, from + 8, from + DATE_LENGTH)
    if (year < 0 || month < 0 || day < 0) return Number.NaN
    const date = 1e4 * year + 100 * month + day
    if (date !== this.#date) {
      const text = Buffer.from(bytes.subarray(from, from + DATE_LENGTH)).toString('latin1')
      this.#midnight = timeOf(text) ?? Number.NaN
      this.#date = date
    }
    if (isDate) return this.#midnight
    const at = from + DATE_LENGTH
    if ((bytes[at] !== SPACE && bytes[at] !== LETTER_T) || bytes[at + 3] !== COLON || bytes[at + 6] !== COLON)
      return Number.NaN
    const [hour, minute, second] = [at + 1, at + 4, at + 7].map(start => digits(bytes, start, start + 2))
    const isValid = hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 && second >= 0 && second <= 59
    return isValid ? this.#midnight + 1000 * (3600 * hour + 60 * minute + second) : Number.NaN
  }
}

const DASH = 0x2d
const COLON = 0x3a
const SPACE = 0x20
const LETTER_T = 0x54
const ZERO = 0x30

/** The number that only digits write; −1 for other bytes. */
function digits(bytes: Uint8Array, from: number, to: number): number {
  let number = 0
  for (let i = from; i < to; i++) {
    const digit = bytes[i] - ZERO
    if (digit < 0 || digit > 9) return -1
    number = 10 * number + digit
  }
  return number
}

function circle(share: number): [number, number] {
  return [Math.sin(2 * Math.PI * share), Math.cos(2 * Math.PI * share)]
}

/**
 * Calls `add` with the hash of each word, in lower case, and with `bigrams` then of its pair with the word before. A word is a sequence of letters,
 * digits, apostrophes and bytes outside ASCII.
 */
export function hashWords(
  bytes: Uint8Array,
  from: number,
  to: number,
  seed: number,
  bigrams: boolean,
  add: (hash: number, word: Uint8Array, length: number, isPair: boolean) => void
): void {
  const word = new Uint8Array(64)
  let length = 0
  let previous: number | undefined
  for (let i = from; i <= to; i++) {
    const byte = i < to ? bytes[i] : 0x20
    const lower = byte | 0x20
    const isLetter = lower >= 0x61 && lower <= 0x7a
    const isWord = isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x27 || byte >= 0x80
    // Only the first 64 bytes of a word count.
    if (isWord) {
      if (length < word.length) word[length++] = isLetter ? lower : byte
    } else if (length > 0) {
      const hash = murmur3(word, 0, length, seed)
      add(hash, word, length, false)
      if (bigrams && previous !== undefined) add(murmur3(word, 0, length, previous), word, length, true)
      previous = hash
      length = 0
    }
  }
}
