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
