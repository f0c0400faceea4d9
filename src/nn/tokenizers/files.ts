/** Tokenizers of Hugging Face folders: a `tokenizer.json`, or the vocabulary files of BERT and GPT-2. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ModelError } from '../types.js'
import { bytePairJson, wordPieceJson } from './json.js'
import { parseTokenizer } from './subwords.js'

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
