/** One token for each character of an alphabet; token 0 stands for any other, and for padding. */
import type { Tokenizer } from './tokenizer.js'

const UNKNOWN = '�'

/** @param alphabet characters in the order of their tokens, as from `alphabetOf` */
export function characterTokenizer(alphabet: string): Tokenizer {
  const characters = [UNKNOWN, ...alphabet]
  const tokens = new Map(characters.map((character, token) => [character, token]))
  const encode = (text: string) => Array.from(text, character => tokens.get(character) ?? 0)
  return {
    vocabulary: characters.length,
    padding: 0,
    encode,
    encodeWithSpecialTokens: encode,
    decode: numbers => numbers.map(token => characters[token] ?? UNKNOWN).join('')
  }
}

/** All characters (code points) of a text, once each, ascending. */
export function alphabetOf(text: string): string {
  const characters = [...new Set(text)].filter(character => character !== UNKNOWN)
  return characters.sort((a, b) => (a.codePointAt(0) ?? 0) - (b.codePointAt(0) ?? 0)).join('')
}
