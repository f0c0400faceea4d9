/**
 * Word pieces and byte pairs by Hugging Face's tokenizers library: from a `tokenizer.json`, which trained tokenizers are written
 * as, or from the vocabulary files of BERT and GPT-2; and their training.
 *
 * Trains tokenizers: byte pairs (Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016) on bytes,
 * as in GPT-2, and word pieces as in BERT. Both merge the most frequent pair of neighbouring pieces until the vocabulary is
 * full. The result depends on the texts only, not on their order.
 */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Tokenizer as Library } from '@huggingface/tokenizers'
import { ModelError } from '../types.js'
import { type Merge, mergePairs } from './merges.js'
import type { Tokenizer } from './tokenizer.js'

/** The contents of a `tokenizer.json`, validated by the library. */
type TokenizerJson = object

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
    vocabulary: 1 + [...tokens.values()].reduce((highest, token) => Math.max(highest, token), 0),
    padding: firstOf(PADDING_TOKENS) ?? 0,
    separator: firstOf(SEPARATORS),
    encode,
    encodeWithSpecialTokens(texts, max) {
      const template = templates[texts.length - 1]
      const encoded = texts.map(encode)
      const lengths = truncated(
        encoded.map(({ length }) => length),
        Math.max(0, max - (template.length - texts.length))
      )
      const parts = encoded.map((ids, i) => ids.slice(0, lengths[i]))
      return template.flatMap(item => ('text' in item ? parts[item.text] : [item.token])).slice(0, max)
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
function truncated(lengths: readonly number[], max: number): readonly number[] {
  if (lengths.length === 1) return [Math.min(lengths[0], max)]
  const [first, second] = lengths
  if (first + second <= max) return lengths
  const half = Math.floor(max / 2)
  if (Math.min(first, second) <= half) return first < second ? [first, max - first] : [max - second, second]
  return first <= second ? [half, max - half] : [max - half, half]
}

const SPECIAL_TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'] as const
/** The mask token of pretrained models. */
const MASK = '[MASK]'
const END_OF_TEXT = '<|endoftext|>'
/** Also the limit of the library. */
const MAX_WORD_CHARACTERS = 100

/** The character that stands for each byte (GPT-2): itself if it is printable, otherwise one from 256 on. */
const BYTES: readonly string[] = byteCharacters()

function byteCharacters(): string[] {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++))
}

function specialToken(content: string, id: number): object {
  return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }
}

function numbered(vocabulary: readonly string[]): Record<string, number> {
  return Object.fromEntries(vocabulary.map((piece, token) => [piece, token]))
}

/** @param vocabulary all pieces in token order, with `END_OF_TEXT` */
function bytePairJson(vocabulary: readonly string[], merges: readonly Merge[]): TokenizerJson {
  return {
    version: '1.0',
    added_tokens: [specialToken(END_OF_TEXT, vocabulary.indexOf(END_OF_TEXT))],
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      vocab: numbered(vocabulary),
      merges: merges.map(({ left, right }) => `${left} ${right}`)
    }
  }
}

/** @param vocabulary all pieces in token order, with `SPECIAL_TOKENS` */
function wordPieceJson(vocabulary: readonly string[], isLowerCase = true): TokenizerJson {
  const vocab = numbered(vocabulary)
  const mark = (id: '[CLS]' | '[SEP]', type_id = 0) => ({ SpecialToken: { id, type_id } })
  const named = (id: '[CLS]' | '[SEP]') => ({ id, ids: [vocab[id]], tokens: [id] })
  return {
    version: '1.0',
    added_tokens: [...SPECIAL_TOKENS, MASK]
      .filter(content => Object.hasOwn(vocab, content))
      .map(content => specialToken(content, vocab[content])),
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: isLowerCase
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: {
      type: 'TemplateProcessing',
      single: [mark('[CLS]'), { Sequence: { id: 'A', type_id: 0 } }, mark('[SEP]')],
      pair: [
        mark('[CLS]'),
        { Sequence: { id: 'A', type_id: 0 } },
        mark('[SEP]'),
        { Sequence: { id: 'B', type_id: 1 } },
        mark('[SEP]', 1)
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

/**
 * The tokenizer of a folder as the contents of a `tokenizer.json`; undefined if there is none.
 * @throws ModelError if it is not a tokenizer
 */
export function readTokenizer(folder: string): string | undefined {
  const [json, words, settings, vocabulary, merges] = (
    ['tokenizer.json', 'vocab.txt', 'tokenizer_config.json', 'vocab.json', 'merges.txt'] as const
  ).map(name => join(folder, name))
  if (existsSync(json)) return checked(readFileSync(json, 'utf8'), json)
  if (existsSync(words)) {
    const { do_lower_case: isLowerCase = true } = existsSync(settings) ? parsed(settings) : {}
    return checked(JSON.stringify(wordPieceJson(linesOf(words), isLowerCase === true)), words)
  }
  if (!existsSync(vocabulary) || !existsSync(merges)) return undefined
  const pieces = Object.entries(parsed(vocabulary)).sort(([, a], [, b]) => Number(a) - Number(b))
  const pairs = linesOf(merges)
    .filter(line => line !== '' && !line.startsWith('#version'))
    .map(line => line.split(' '))
    .map(([left, right]) => ({ left, right, merged: left + right }))
  const names = pieces.map(([piece]) => piece)
  return checked(JSON.stringify(bytePairJson(names, pairs)), vocabulary)
}

function checked(json: string, source: string): string {
  parseTokenizer(json, source)
  return json
}

/** Lines without their ends, and without the empty one at the end of the file. */
function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8').replace(/\n$/, '').split(/\r?\n/)
}

function parsed(file: string): Record<string, unknown> {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new ModelError(`${file} is not valid JSON: ${(error as Error).message}`)
  }
}

/** `wordpiece`: lower case, accents stripped, texts between [CLS] and [SEP]. `bpe`: every text is decoded unchanged. */
export type TokenizerKind = 'wordpiece' | 'bpe'

/** The special token and all bytes. */
const LEAST_SIZE = 1 + BYTES.length
const MAX_SIZE = 1_000_000

/**
 * @param size maximum number of tokens; characters beyond it are unknown word pieces
 * @returns the contents of a `tokenizer.json`
 * @throws ModelError if the size is out of range
 */
export function trainTokenizer(texts: Iterable<string>, kind: TokenizerKind, size: number): TokenizerJson {
  if (!Number.isInteger(size) || size < LEAST_SIZE || size > MAX_SIZE) {
    throw new ModelError(`a tokenizer of ${size} tokens: give a size from ${LEAST_SIZE} to ${MAX_SIZE}`)
  }
  return kind === 'bpe' ? bytePairs(texts, size) : wordPieces(texts, size)
}

function bytePairs(texts: Iterable<string>, size: number): TokenizerJson {
  const start = [END_OF_TEXT, ...BYTES]
  const shape = bytePairJson(start, [])
  const words = [...countWords(texts, shape)].map(([word, count]) => ({ pieces: [...word], count }))
  const merges = mergePairs(words, (left, right) => left + right, size - start.length)
  return bytePairJson([...new Set([...start, ...merges.map(({ merged }) => merged)])], merges)
}

function wordPieces(texts: Iterable<string>, size: number): TokenizerJson {
  const counts = countWords(texts, wordPieceJson(SPECIAL_TOKENS))
  const words = [...counts].flatMap(([word, count]) => {
    const pieces = Array.from(word, (character, i) => (i === 0 ? character : `##${character}`))
    return word.length > MAX_WORD_CHARACTERS ? [] : [{ pieces, count }]
  })
  // Each character at the start of a word and inside, so that new words of known characters are known.
  const characters = new Map<string, number>()
  for (const [word, count] of counts) {
    for (const character of word) {
      for (const piece of [character, `##${character}`]) characters.set(piece, (characters.get(piece) ?? 0) + count)
    }
  }
  const start = [...SPECIAL_TOKENS, ...byFrequency(characters)].slice(0, size)
  const merges = mergePairs(words, (left, right) => left + right.slice(2), size - start.length)
  return wordPieceJson([...new Set([...start, ...merges.map(({ merged }) => merged)])])
}

/** The words of the texts, as the tokenizer of that shape splits them. */
function countWords(texts: Iterable<string>, shape: TokenizerJson): ReadonlyMap<string, number> {
  const cutter = new Library(shape, {})
  const words = new Map<string, number>()
  for (const text of texts) {
    const normal = cutter.normalizer?.normalize(text) ?? text
    for (const word of cutter.pre_tokenizer?.pre_tokenize(normal) ?? []) words.set(word, (words.get(word) ?? 0) + 1)
  }
  return words
}

/** By descending count, ties in code unit order. */
function byFrequency(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([piece]) => piece)
}
