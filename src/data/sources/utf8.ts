/** Checks that text is UTF-8, and finds the encoding that fits if it is not. */
import { isUtf8 } from 'node:buffer'
import { EncodingError } from '../errors.js'

const NEWLINE = 0x0a
/** Bytes that are looked at to find an encoding. */
const SAMPLE_BYTES = 64 * 1024

/**
 * @param bytes whole rows from the start of the input
 * @throws EncodingError if they are no UTF-8
 */
export function checkUtf8(bytes: Uint8Array, source: string): void {
  const wide = wideEncoding(bytes)
  if (wide === undefined && isUtf8(bytes)) return
  const at = wide === undefined ? invalidAt(bytes) : 0
  const line = 1 + newlinesBefore(bytes, at)
  const encoding = wide ?? encodingOf(bytes.subarray(at, at + SAMPLE_BYTES))
  throw new EncodingError(
    `${source}:${line}: the text is not UTF-8, and ${encoding} fits: give --encoding ${encoding} (encoding), or --encoding utf-8 to replace what is not`
  )
}

/** Checks the chunks of a text that follow each other. */
export class Utf8Checker {
  /** Whether a chunk was no UTF-8. */
  isInvalid = false

  /** @returns whether this chunk is the first one that is no UTF-8 */
  add(chunk: Uint8Array): boolean {
    if (this.isInvalid || isUtf8(chunk) || isUtf8(withoutCutCharacters(chunk))) return false
    this.isInvalid = true
    return true
  }
}

/** Without the end of a character at the start, and the start of one at the end. */
function withoutCutCharacters(chunk: Uint8Array): Uint8Array {
  let from = 0
  while (from < 3 && from < chunk.length && (chunk[from] & 0xc0) === 0x80) from++
  let to = chunk.length
  while (to > from && chunk.length - to < 3 && (chunk[to - 1] & 0xc0) === 0x80) to--
  if (to > from && chunk[to - 1] >= 0xc0) to--
  else to = chunk.length
  return chunk.subarray(from, to)
}

function invalidAt(bytes: Uint8Array): number {
  let [valid, end] = [0, bytes.length]
  // Rows end in a newline, so a prefix of whole rows is valid up to the first row that is not.
  while (end - valid > 1) {
    const middle = bytes.lastIndexOf(NEWLINE, (valid + end) >> 1) + 1
    const cut = middle > valid ? middle : bytes.indexOf(NEWLINE, (valid + end) >> 1) + 1
    if (cut <= valid || cut >= end) break
    if (isUtf8(bytes.subarray(valid, cut))) valid = cut
    else end = cut
  }
  return valid
}

function newlinesBefore(bytes: Uint8Array, end: number): number {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at >= 0 && at < end; at = bytes.indexOf(NEWLINE, at + 1)) count++
  return count
}

/** UTF-16 without a byte order mark has zeros in every other byte of ASCII characters. */
function wideEncoding(bytes: Uint8Array): string | undefined {
  const zeros = [0, 0]
  const length = Math.min(bytes.length, 1024)
  for (let i = 0; i < length; i++) if (bytes[i] === 0) zeros[i & 1]++
  if (Math.max(...zeros) < 0.2 * length) return undefined
  return zeros[1] > zeros[0] ? 'utf-16le' : 'utf-16be'
}

/** The encoding that bytes probably have that are no UTF-8. */
function encodingOf(bytes: Uint8Array): string {
  const counts = new Uint32Array(256)
  let [high, runs, letters, odd] = [0, 0, 0, 0]
  // First bytes of pairs of bytes above 127.
  const leads: number[] = []
  for (let i = 0, position = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
    if (byte < 0x80) {
      letters += Number(isLetter)
      odd += position & 1
      position = 0
      continue
    }
    counts[byte]++
    high++
    if (position === 0) runs++
    if ((position++ & 1) === 0) leads.push(byte)
  }
  const share = (from: number, to: number) =>
    counts.subarray(from, to + 1).reduce((sum, count) => sum + count, 0) / high
  const leadShare = (from: number, to: number) => leads.filter(byte => byte >= from && byte <= to).length / leads.length
  // Kana are the most frequent characters of Japanese.
  if (share(0x82, 0x83) > 0.25 && decodes(bytes, 'shift_jis')) return 'shift_jis'
  // Letters with accents stand alone among letters without.
  if (high < 2 * runs && letters > high) return 'windows-1252'
  if (leadShare(0xa4, 0xa5) > 0.3 && decodes(bytes, 'euc-jp')) return 'euc-jp'
  // The second byte of a character of Big5 may be ASCII.
  if (odd > 0.2 * runs && leadShare(0xa4, 0xc6) > 0.5 && decodes(bytes, 'big5')) return 'big5'
  if (leadShare(0xb0, 0xc8) > 0.9 && decodes(bytes, 'euc-kr')) return 'euc-kr'
  if (leadShare(0xa1, 0xd7) > 0.8 && decodes(bytes, 'gb18030')) return 'gb18030'
  if (share(0xe0, 0xff) > 0.5) return 'windows-1251'
  if (share(0xc0, 0xdf) > 0.5) return 'koi8-r'
  return 'windows-1252'
}

function decodes(bytes: Uint8Array, encoding: string): boolean {
  // The last character may be cut.
  const end = bytes.lastIndexOf(NEWLINE) + 1
  try {
    new TextDecoder(encoding, { fatal: true }).decode(end > 0 ? bytes.subarray(0, end) : bytes)
    return true
  } catch {
    return false
  }
}
