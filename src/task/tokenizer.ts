/** Tokenizers of text tasks: from a file, or trained from the task's texts. */
import { OptionError } from '../learner/index.js'
import type { TextSpec } from '../nn/spec/network-spec.js'
import type { TokenizerKind } from '../nn/tokenizers/subwords.js'
import type { StreamOptions } from '../streams/index.js'
import { noData } from './stream.js'
import { readText, readTexts, type TextHints, textFormatOf, textsOf } from './texts.js'

export const tokenizerKinds: readonly TokenizerKind[] = ['wordpiece', 'bpe']

/**
 * How text becomes tokens.
 * @param tokenizer a `tokenizer.json`, or `wordpiece:SIZE` or `bpe:SIZE` to train one @default one token per character
 * @throws ModelError, OptionError; errors of the file
 */
export async function tokenizationOf(
  tokenizer: string | undefined,
  texts: readonly string[]
): Promise<Pick<TextSpec, 'alphabet' | 'pieces'>> {
  const { alphabetOf, parseTokenizer, trainTokenizer } = await import('../l2l/index.js')
  if (tokenizer === undefined) return { alphabet: alphabetOf(texts.join('')) }
  const [, kind, size] = /^([a-z]+):(\d+)$/.exec(tokenizer) ?? []
  if (kind !== undefined) return { pieces: JSON.stringify(trainTokenizer(texts, kindOf(kind), Number(size))) }
  const pieces = await readText(tokenizer)
  parseTokenizer(pieces, tokenizer)
  return { pieces }
}

function kindOf(kind: string): TokenizerKind {
  if (tokenizerKinds.includes(kind as TokenizerKind)) return kind as TokenizerKind
  throw new OptionError(
    `unknown tokenizer "${kind}": give a tokenizer.json, or ${tokenizerKinds.join(':SIZE or ')}:SIZE`
  )
}

export interface TrainedTokenizer {
  /** The contents of a `tokenizer.json`. */
  readonly json: string
  /** Number of tokens. */
  readonly vocabulary: number
  /** Texts, or lines of plain text. */
  readonly texts: number
  /** Tokens per character of the texts. */
  readonly tokensPerCharacter: number
}

/**
 * Trains a tokenizer from the texts of a file: CSV, Parquet, JSON lines or plain text.
 * @throws ModelError, OptionError; errors of the file
 */
export async function tokenizerFrom(
  options: TextHints & Pick<StreamOptions, 'format' | 'encoding'> & { readonly data?: string },
  kind: TokenizerKind,
  size: number
): Promise<TrainedTokenizer> {
  const { data } = options
  if (data === undefined) throw noData()
  const { createTokenizer, trainTokenizer } = await import('../l2l/index.js')
  const content = await readText(data, options.encoding)
  const format = textFormatOf({ ...options, data })
  const texts = textsOf(content, format && readTexts(content, data, format, options))
  if (texts.length === 0) throw new OptionError(`${data}: there are no texts: check the file`)
  const json = JSON.stringify(trainTokenizer(texts, kind, size))
  const tokenizer = createTokenizer({ length: 1, pieces: json })
  const sum = (lengths: (text: string) => number) => texts.reduce((total, text) => total + lengths(text), 0)
  const tokensPerCharacter = sum(text => tokenizer.encode(text).length) / sum(text => text.length)
  return { json, vocabulary: tokenizer.vocabulary, texts: texts.length, tokensPerCharacter }
}
