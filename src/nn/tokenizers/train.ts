/**
 * Trains tokenizers: byte pairs (Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016) on bytes, as in
 * GPT-2, and word pieces as in BERT. Both merge the most frequent pair of neighbouring pieces until the vocabulary is full. The
 * result depends on the texts only, not on their order.
 */
import { Tokenizer as Library } from '@huggingface/tokenizers'
import { ModelError } from '../types.js'
import { BYTES, bytePairJson, END_OF_TEXT, MAX_WORD_CHARACTERS, SPECIAL_TOKENS, wordPieceJson } from './json.js'
import { mergePairs } from './merges.js'
import type { TokenizerJson } from './subwords.js'

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
