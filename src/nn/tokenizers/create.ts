/** How a network's text is cut, as plain data. */
import type { TextSpec } from '../spec/network-spec.js'
import { characterTokenizer } from './characters.js'
import { pieceTokenizer } from './subwords.js'
import type { Tokenizer } from './tokenizer.js'

/** @throws SyntaxError for a `tokenizer.json` that is no JSON */
export function tokenizerOf({ alphabet, pieces }: TextSpec): Tokenizer {
  return pieces === undefined ? characterTokenizer(alphabet ?? '') : pieceTokenizer(JSON.parse(pieces))
}
