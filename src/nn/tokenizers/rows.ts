/** Texts as rows of equally many tokens, the shape in which models take them. */
import { ModelError } from '../errors.js'
import type { Tokenizer } from './tokenizer.js'

/**
 * Rows for models that predict the next token: row r holds tokens r·length … (r + 1)·length of the text, both included, so its
 * first `length` are the input and its last `length` the targets. What is left at the end is not used.
 *
 * @returns rows of length + 1 tokens
 * @throws ModelError if the text is too short for one
 */
export function nextTokenRows(text: string, tokenizer: Tokenizer, length: number): Int32Array[] {
  const tokens = Int32Array.from(tokenizer.encode(text))
  const count = Math.floor((tokens.length - 1) / length)
  if (count < 1) {
    throw new ModelError(`the text has ${tokens.length} tokens: give at least ${length + 1}, or a shorter length`)
  }
  return Array.from({ length: count }, (_, row) => tokens.slice(row * length, (row + 1) * length + 1))
}

/** A text of its own, for a classifier: cut at `length` tokens, or filled up with padding. */
export function textRow(text: string, tokenizer: Tokenizer, length: number): Int32Array {
  const tokens = tokenizer.encodeWithSpecialTokens(text).slice(0, length)
  const row = new Int32Array(length).fill(tokenizer.padding)
  row.set(tokens)
  return row
}
