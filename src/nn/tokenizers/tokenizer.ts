/** The tokenizer interface, the character tokenizer, and rows of tokens for models. */
import { ModelError } from '../types.js'

export interface Tokenizer {
  /** All token ids are below this number. */
  readonly vocabulary: number
  /** The token that pads short rows. */
  readonly padding: number
  /** Encodes without special tokens, so that consecutive parts of a long text can be joined. */
  encode(text: string): number[]
  /** The token between the texts of a pair; undefined if the tokenizer has none. */
  readonly separator?: number
  /**
   * Encodes a complete text, or a pair of texts, with start and end tokens if the tokenizer has them.
   * @param max number of tokens: texts are truncated, the longer one of a pair first, and the other tokens kept
   */
  encodeWithSpecialTokens(texts: readonly string[], max: number): number[]
  decode(tokens: readonly number[]): string
}

const UNKNOWN = '�'

/**
 * One token for each character of an alphabet. Token 0 is any other character, and padding.
 * @param alphabet characters in token order, as from `alphabetOf`
 */
export function characterTokenizer(alphabet: string): Tokenizer {
  const characters = [UNKNOWN, ...alphabet]
  const tokens = new Map(characters.map((character, token) => [character, token]))
  const encode = (text: string) => Array.from(text, character => tokens.get(character) ?? 0)
  return {
    vocabulary: characters.length,
    padding: 0,
    encode,
    encodeWithSpecialTokens: (texts, max) => encode(texts.join(' ')).slice(0, max),
    decode: ids => ids.map(token => characters[token] ?? UNKNOWN).join('')
  }
}

/** The distinct characters (code points) of a text, in ascending order. */
export function alphabetOf(text: string): string {
  const characters = [...new Set(text)].filter(character => character !== UNKNOWN)
  return characters.sort((a, b) => (a.codePointAt(0) ?? 0) - (b.codePointAt(0) ?? 0)).join('')
}

/**
 * Rows for next-token models: row r holds tokens r·length … (r + 1)·length of the text, both inclusive. Its first
 * `length` tokens are the input and its last `length` the targets. A remainder at the end of the text is dropped.
 *
 * @returns rows of length + 1 tokens
 * @throws ModelError if the text is too short for one row
 */
export function nextTokenRows(text: string, tokenizer: Tokenizer, length: number): Int32Array[] {
  const tokens = Int32Array.from(tokenizer.encode(text))
  const count = Math.floor((tokens.length - 1) / length)
  if (count < 1) {
    throw new ModelError(
      `the text has ${tokens.length} tokens: provide at least ${length + 1}, or use a shorter --length`
    )
  }
  return Array.from({ length: count }, (_, row) => tokens.slice(row * length, (row + 1) * length + 1))
}

/** One row for a classifier: a complete text, or a pair of texts, truncated or padded to `length` tokens. */
export function textRow(texts: readonly string[], tokenizer: Tokenizer, length: number): Int32Array {
  const tokens = tokenizer.encodeWithSpecialTokens(texts, length)
  const row = new Int32Array(length).fill(tokenizer.padding)
  row.set(tokens)
  return row
}
