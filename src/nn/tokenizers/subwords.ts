/** Word pieces and byte pairs by Hugging Face's tokenizers library from a `tokenizer.json`. */
import { Tokenizer as Library } from '@huggingface/tokenizers'
import { ModelError } from '../types.js'
import type { Tokenizer } from './tokenizer.js'

/** The contents of a `tokenizer.json`, validated by the library. */
export type TokenizerJson = object

/** Candidates for the padding token, in order of preference. */
const PADDING_TOKENS = ['[PAD]', '<pad>', '<|endoftext|>']
const SEPARATORS = ['[SEP]', '</s>']

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
  const firstOf = (names: readonly string[]) => names.map(name => tokens.get(name)).find(token => token !== undefined)
  const encode = (text: string) => library.encode(text, { add_special_tokens: false }).ids
  const templates = [1, 2].map(texts => templateOf(library, tokens, texts))
  return {
    // Ids may have gaps.
    vocabulary: 1 + [...tokens.values()].reduce((most, token) => Math.max(most, token), 0),
    padding: firstOf(PADDING_TOKENS) ?? 0,
    separator: firstOf(SEPARATORS),
    encode,
    encodeWithSpecialTokens(texts, most) {
      const template = templates[texts.length - 1]
      const encoded = texts.map(encode)
      const lengths = truncated(
        encoded.map(({ length }) => length),
        Math.max(0, most - (template.length - texts.length))
      )
      const parts = encoded.map((ids, i) => ids.slice(0, lengths[i]))
      return template.flatMap(item => ('text' in item ? parts[item.text] : [item.token])).slice(0, most)
    },
    decode: ids =>
      ids.length === 0
        ? ''
        : library.decode([...ids], { skip_special_tokens: true, clean_up_tokenization_spaces: false })
  }
}

/** A row of a text or a pair: special tokens, and where the texts are. */
type Template = readonly ({ readonly text: number } | { readonly token: number })[]

/** @param texts 1 or 2 */
function templateOf(library: Library, ids: ReadonlyMap<string, number>, texts: number): Template {
  // Marks that are not tokens.
  const marks = ['\0first', '\0second'].slice(0, texts)
  const [first, second] = marks.map(mark => [mark])
  const made = library.post_processor?.post_process(first, second ?? null, true) ?? { tokens: marks }
  return [...made.tokens, ...(made.tokens_pair ?? [])].map(token =>
    marks.includes(token) ? { text: marks.indexOf(token) } : { token: ids.get(token) ?? 0 }
  )
}

/** Lengths of the texts after truncation, the longer text first, as by `longest_first` of Hugging Face. */
function truncated(lengths: readonly number[], most: number): readonly number[] {
  if (lengths.length === 1) return [Math.min(lengths[0], most)]
  const [first, second] = lengths
  if (first + second <= most) return lengths
  const half = Math.floor(most / 2)
  if (Math.min(first, second) <= half) return first < second ? [first, most - first] : [most - second, second]
  return first <= second ? [half, most - half] : [most - half, half]
}
