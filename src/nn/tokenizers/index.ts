/** Tokenizers: characters, word pieces and byte pairs. */
import type { TextSpec } from '../spec/network-spec.js'
import { parseTokenizer } from './subwords.js'
import { characterTokenizer, type Tokenizer } from './tokenizer.js'

export { parseTokenizer, type TokenizerKind, trainTokenizer } from './subwords.js'
export { alphabetOf, nextTokenRows, type Tokenizer, textRow } from './tokenizer.js'

/**
 * The tokenizer of a network's text.
 * @throws ModelError if the stored `tokenizer.json` is not a tokenizer
 */
export function createTokenizer({ alphabet, pieces }: TextSpec): Tokenizer {
  return pieces === undefined ? characterTokenizer(alphabet ?? '') : parseTokenizer(pieces, 'the tokenizer')
}
