/** How a network's text is cut, as plain data. */
import type { TextSpec } from '../description.js'
import { characterTokenizer } from './characters.js'
import { pieceTokenizer } from './pieces.js'
import type { Tokenizer } from './tokenizer.js'

/** @throws SyntaxError for a `tokenizer.json` that is no JSON */
export function tokenizerOf({ alphabet, pieces }: TextSpec): Tokenizer {
  return pieces === undefined ? characterTokenizer(alphabet ?? '') : pieceTokenizer(JSON.parse(pieces))
}
