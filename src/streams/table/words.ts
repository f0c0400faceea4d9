/** The words of texts, as hashes. */
import { murmur3 } from '../hash.js'

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
