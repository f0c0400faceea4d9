/**
 * Hashes of names and words: MurmurHash3 (A. Appleby, x86 32-bit variant, public domain algorithm) over bytes. Vowpal Wabbit
 * uses the same feature hash, so names have the same 32 bits in both programs. In scripts without spaces between words, words
 * are groups of characters.
 */

/** Default number of hashed features, as a power of two. */
export const DEFAULT_HASH_BITS = 18

/** @returns the hash of `bytes[from, to)` as an unsigned 32-bit integer */
export function murmur3(bytes: Uint8Array, from: number, to: number, seed: number): number {
  let hash = seed | 0
  const length = to - from
  const tail = from + (length & ~3)
  for (let i = from; i < tail; i += 4) {
    hash ^= scrambled(bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24))
    hash = (hash << 13) | (hash >>> 19)
    hash = (Math.imul(hash, 5) + 0xe6546b64) | 0
  }
  let rest = 0
  for (let i = to - 1; i >= tail; i--) rest = (rest << 8) | bytes[i]
  hash ^= scrambled(rest) ^ length
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

function scrambled(block: number): number {
  const mixed = Math.imul(block, 0xcc9e2d51)
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593)
}

/** Only the first bytes of a word count. */
const MAX_BYTES = 64
/** Characters of such a script that are a group. */
const GROUPS = [2, 3]

type AddWord = (hash: number, word: Uint8Array, length: number, isPair: boolean) => void

/**
 * Calls `add` with the hash of each word, in lower case, and with `bigrams` then of its pair with the word before. A word is a sequence of letters,
 * digits, apostrophes and bytes outside ASCII. A sequence of characters of a script without spaces is all of its groups of two and three
 * characters.
 */
export function hashWords(
  bytes: Uint8Array,
  from: number,
  to: number,
  seed: number,
  bigrams: boolean,
  add: AddWord
): void {
  const word = new Uint8Array(MAX_BYTES)
  let length = 0
  let previous: number | undefined
  for (let i = from; i <= to; i++) {
    const byte = i < to ? bytes[i] : 0x20
    const lower = byte | 0x20
    const isLetter = lower >= 0x61 && lower <= 0x7a
    let isWord = isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x27 || byte >= 0x80
    const isUnspaced = byte >= 0xe0 && unspacedBytes(bytes, i, to) > 0
    const isMark = byte >= 0xe2 && isPunctuation(bytes, i, to)
    if (isUnspaced || isMark) isWord = false
    if (isWord) {
      if (length < word.length) word[length++] = isLetter ? lower : byte
      continue
    }
    if (length > 0) {
      const hash = murmur3(word, 0, length, seed)
      add(hash, word, length, false)
      if (bigrams && previous !== undefined) add(murmur3(word, 0, length, previous), word, length, true)
      previous = hash
      length = 0
    }
    if (isUnspaced) i = hashGroups(bytes, i, to, seed, add) - 1
    else if (isMark) i += 2
  }
}

/** Adds the groups of the characters from `from` on. @returns the position after them */
function hashGroups(bytes: Uint8Array, from: number, to: number, seed: number, add: AddWord): number {
  // Starts of the last characters, the newest one at the end.
  const starts: number[] = []
  let end = from
  let count = 0
  for (let size = unspacedBytes(bytes, end, to); size > 0; size = unspacedBytes(bytes, end, to)) {
    if (starts.length === GROUPS[GROUPS.length - 1]) starts.shift()
    starts.push(end)
    end += size
    count++
    for (const group of GROUPS) {
      if (starts.length < group) continue
      const start = starts[starts.length - group]
      add(murmur3(bytes, start, end, seed), bytes.subarray(start, end), end - start, false)
    }
  }
  if (count === 1) add(murmur3(bytes, from, end, seed), bytes.subarray(from, end), end - from, false)
  return end
}

/** Number of bytes of the character at `at`, if its script has no spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese; otherwise 0. */
function unspacedBytes(bytes: Uint8Array, at: number, to: number): number {
  const first = bytes[at]
  if (first < 0xe0 || at + 2 >= to) return 0
  const second = bytes[at + 1]
  if (first === 0xe0) return second >= 0xb8 && second <= 0xbb ? 3 : 0
  if (first === 0xe1) return (second >= 0x80 && second <= 0x82) || second === 0x9e || second === 0x9f ? 3 : 0
  // From U+3040 to U+9FFF, and the rarer ideographs.
  if (first === 0xe3) return second >= 0x81 ? 3 : 0
  if (first >= 0xe4 && first <= 0xe9) return 3
  return first === 0xf0 && second >= 0xa0 && second < 0xb0 && at + 3 < to ? 4 : 0
}

/** Whether the character at `at` is a punctuation mark of East Asia, of three bytes. */
function isPunctuation(bytes: Uint8Array, at: number, to: number): boolean {
  if (at + 2 >= to) return false
  const [first, second, third] = [bytes[at], bytes[at + 1], bytes[at + 2]]
  if (first === 0xe3) return second === 0x80
  return first === 0xef && second === 0xbc && (third < 0x90 || third >= 0x9a) && third < 0xa1
}
