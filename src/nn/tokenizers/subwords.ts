/** Word pieces and byte pairs by Hugging Face's tokenizers library from a `tokenizer.json`. */
import { Tokenizer as Library } from '@huggingface/tokenizers'
import { ModelError } from '../types.js'
import type { Tokenizer } from './tokenizer.js'

/** The contents of a `tokenizer.json`, validated by the library. */
export type TokenizerJson = object

/** Candidates for the padding token, in order of preference. */
const PADDING_TOKENS = ['[PAD]', '<pad>', '<|endoftext|>']

/**
 * @param text the contents of a `tokenizer.json`
 * @param source for messages
 * @throws ModelError if it is not a tokenizer
 */
export function parseTokenizer(text: string, source: string): Tokenizer {
  try {
    return subwordTokenizer(JSON.parse(text))
  } catch (error) {
    throw new ModelError(`${source} is not a valid tokenizer.json: ${(error as Error).message.split('\n')[0]}`)
  }
}

export function subwordTokenizer(json: TokenizerJson): Tokenizer {
  const library = new Library(json, {})
  const tokens = library.get_vocab(true)
  const padding = PADDING_TOKENS.map(name => tokens.get(name)).find(token => token !== undefined)
  return {
    // Ids may have gaps.
    vocabulary: 1 + [...tokens.values()].reduce((most, token) => Math.max(most, token), 0),
    padding: padding ?? 0,
    encode: text => library.encode(text, { add_special_tokens: false }).ids,
    encodeWithSpecialTokens: text => library.encode(text).ids,
    decode: ids =>
      ids.length === 0
        ? ''
        : library.decode([...ids], { skip_special_tokens: true, clean_up_tokenization_spaces: false })
  }
}
