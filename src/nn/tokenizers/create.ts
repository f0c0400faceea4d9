/** How a network's text is cut, as plain data. */
import type { TextSpec } from '../spec/network-spec.js'
import { characterTokenizer } from './characters.js'
import { subwordTokenizer } from './subwords.js'
import type { Tokenizer } from './tokenizer.js'

/** @throws SyntaxError for a `tokenizer.json` that is no JSON */
export function createTokenizer({ alphabet, pieces }: TextSpec): Tokenizer {
  return pieces === undefined ? characterTokenizer(alphabet ?? '') : subwordTokenizer(JSON.parse(pieces))
}
