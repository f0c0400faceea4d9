/**
 * Word pieces and byte pairs by Hugging Face's tokenizers library from a `tokenizer.json`, and a word-piece vocabulary
 * built from texts.
 */
import { readFileSync } from 'node:fs'
import { Tokenizer as Library } from '@huggingface/tokenizers'
import { ModelError } from '../types.js'
import type { Tokenizer } from './tokenizer.js'

/** The contents of a `tokenizer.json`, validated by the library. */
export type TokenizerJson = object

/** Candidates for the padding token, in order of preference. */
const PADDING_TOKENS = ['[PAD]', '<pad>', '<|endoftext|>']
const SPECIAL_TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'] as const
/** The library's limit, too. */
const MAX_WORD_CHARACTERS = 100

/**
 * @param file a `tokenizer.json`
 * @throws ModelError if it cannot be read or is not a tokenizer
 */
export function loadTokenizer(file: string): Tokenizer {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new ModelError(`cannot read ${file} (${(error as NodeJS.ErrnoException).code}); expected a tokenizer.json`)
  }
  try {
    return subwordTokenizer(JSON.parse(text))
  } catch (error) {
    throw new ModelError(`${file} is not a valid tokenizer.json: ${(error as Error).message.split('\n')[0]}`)
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
    decode: ids => library.decode([...ids], { skip_special_tokens: true })
  }
}

/**
 * Builds a word-piece vocabulary: special tokens, every character at the start of and inside a word, then the most
 * frequent words. Lower case, accents stripped, texts between [CLS] and [SEP], as in BERT.
 *
 * @param size maximum number of tokens; characters beyond it are unknown
 */
export function buildWordPieces(texts: Iterable<string>, size: number): TokenizerJson {
  const shape = wordPieceJson({ ...Object.fromEntries(SPECIAL_TOKENS.map((name, token) => [name, token])) })
  const cutter = new Library(shape, {})
  const words = new Map<string, number>()
  const characters = new Map<string, number>()
  const count = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const text of texts) {
    const normal = cutter.normalizer?.normalize(text) ?? text
    for (const word of cutter.pre_tokenizer?.pre_tokenize(normal) ?? []) {
      if (word.length > MAX_WORD_CHARACTERS) continue
      count(words, word)
      for (const character of word) {
        count(characters, character)
        count(characters, `##${character}`)
      }
    }
  }
  const pieces = [...byFrequency(characters), ...byFrequency(words)]
  const vocabulary = [...new Set([...SPECIAL_TOKENS, ...pieces])].slice(0, Math.max(size, SPECIAL_TOKENS.length))
  return wordPieceJson(Object.fromEntries(vocabulary.map((piece, token) => [piece, token])))
}

/** By descending count, ties in code unit order, so that the vocabulary is the same on every machine. */
function byFrequency(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([piece]) => piece)
}

function wordPieceJson(vocab: Readonly<Record<string, number>>): TokenizerJson {
  const special = (content: (typeof SPECIAL_TOKENS)[number]) => ({
    id: vocab[content],
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true
  })
  const mark = (id: '[CLS]' | '[SEP]') => ({ SpecialToken: { id, type_id: 0 } })
  const named = (id: '[CLS]' | '[SEP]') => ({ id, ids: [vocab[id]], tokens: [id] })
  return {
    version: '1.0',
    added_tokens: SPECIAL_TOKENS.map(special),
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: {
      type: 'TemplateProcessing',
      single: [mark('[CLS]'), { Sequence: { id: 'A', type_id: 0 } }, mark('[SEP]')],
      pair: [
        mark('[CLS]'),
        { Sequence: { id: 'A', type_id: 0 } },
        mark('[SEP]'),
        { Sequence: { id: 'B', type_id: 1 } }
      ],
      special_tokens: { '[CLS]': named('[CLS]'), '[SEP]': named('[SEP]') }
    },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: MAX_WORD_CHARACTERS,
      vocab
    }
  }
}
