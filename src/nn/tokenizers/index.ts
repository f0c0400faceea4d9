/** Tokenizers: characters, word pieces and byte pairs. */
import type { TextSpec } from '../spec/network-spec.js'
import { subwordTokenizer } from './subwords.js'
import { characterTokenizer, type Tokenizer } from './tokenizer.js'

export { alphabetOf, nextTokenRows, type Tokenizer, textRow } from './tokenizer.js'

/**
 * The tokenizer of a network's text.
 * @throws SyntaxError if the stored `tokenizer.json` is not JSON
 */
export function createTokenizer({ alphabet, pieces }: TextSpec): Tokenizer {
  return pieces === undefined ? characterTokenizer(alphabet ?? '') : subwordTokenizer(JSON.parse(pieces))
}
