/**
 * Which format a file has, by its name.
 */
import { basename } from 'node:path'
import { UnknownFormatError } from './errors.js'
import type { TextFormat } from './options.js'

export type Format = TextFormat | 'idx'

export const FORMATS: readonly Format[] = ['libsvm', 'vw', 'csv', 'jsonl', 'idx']

const ENDINGS: Readonly<Record<string, Format>> = {
  libsvm: 'libsvm',
  svm: 'libsvm',
  svmlight: 'libsvm',
  vw: 'vw',
  csv: 'csv',
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  idx: 'idx'
}

/** @throws UnknownFormatError naming the known formats */
export function guessFormat(path: string): Format {
  const name = basename(path).toLowerCase().replace(/\.gz$/, '')
  if (/idx\d-ubyte$/.test(name)) return 'idx'
  const ending = name.slice(name.lastIndexOf('.') + 1)
  if (name.includes('.') && Object.hasOwn(ENDINGS, ending)) return ENDINGS[ending]
  const what =
    path === '-' ? 'standard input has no name to tell its format' : `${path}: the name does not tell the format`
  throw new UnknownFormatError(`${what}: give format as one of ${FORMATS.join(', ')}`)
}

/** What an input is: a built-in stream, or a file or standard input of some format. */
export type InputKind = Format | 'digits' | 'synthetic'

/** @returns undefined if neither the format nor the name tells */
export function inputKind(data: string, format: Format | undefined): InputKind | undefined {
  if (data === 'digits' || data === 'digits:test') return 'digits'
  if (data === 'synthetic') return 'synthetic'
  if (format !== undefined) return format
  try {
    return guessFormat(data)
  } catch (error) {
    if (error instanceof UnknownFormatError) return undefined
    throw error
  }
}
