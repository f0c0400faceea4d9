/** The registry of file formats and built-in streams. A new one is one file and one line here. */
import { csv, parquet } from './csv.js'
import { customInputOptions } from './custom.js'
import { digits, digitsTest } from './digits.js'
import { StreamOptionsError, UnknownFormatError } from './errors.js'
import {
  type BinaryDefinition,
  type BuiltInDefinition,
  type InputOption,
  type InputOptions,
  TABLE_OPTIONS,
  type TextDefinition
} from './format.js'
import { idx } from './idx.js'
import { jsonl } from './jsonl.js'
import { libsvm } from './libsvm.js'
import { synthetic } from './synthetic.js'
import { unsupportedName } from './unsupported.js'
import { vw } from './vw.js'

export const formats = { libsvm, vw, csv, parquet, jsonl, idx } as const satisfies Readonly<
  Record<string, TextDefinition | BinaryDefinition>
>

export const builtInStreams = { digits, 'digits:test': digitsTest, synthetic } as const satisfies Readonly<
  Record<string, BuiltInDefinition>
>

type Formats = typeof formats
/** Format of a stream. */
export type Format = keyof Formats
/** Format of rows of text. */
export type TextFormat = { [Name in Format]: Formats[Name] extends TextDefinition ? Name : never }[Format]
export type BuiltInStream = keyof typeof builtInStreams
export const formatNames = Object.keys(formats) as readonly Format[]

/** What an input is: a built-in stream, or a file or standard input in some format. */
export type InputKind = Format | BuiltInStream

export function isBuiltIn(data: string): data is BuiltInStream {
  return Object.hasOwn(builtInStreams, data)
}

/** The options that the kind of input takes, of those that not every input takes. */
export function inputOptionsOf(kind: InputKind | 'custom' | undefined): readonly InputOption[] {
  if (kind === 'custom') return customInputOptions
  if (kind === undefined) return formats.libsvm.options
  return isBuiltIn(kind) ? builtInStreams[kind].options : formats[kind].options
}

/** Whether the kind of input is text, in which labels may be missing. */
export function isText(kind: InputKind): kind is TextFormat {
  return !isBuiltIn(kind) && formats[kind].kind === 'text'
}

/** Whether the name of a file determines its format. */
export function isNamedAsData(path: string): boolean {
  const name = plainName(path)
  return formatNames.some(format => formats[format].fileName.test(name))
}

/** In lower case, without directories and compression. */
function plainName(path: string): string {
  return (path.split(/[\\/]/).findLast(part => part !== '') ?? '').toLowerCase().replace(/\.(gz|zst)$/, '')
}

/** The format of a file, by its name. @throws UnknownFormatError listing the known formats */
export function guessFormat(path: string): Format {
  const file = /^https?:/.test(path) && URL.canParse(path) ? new URL(path).pathname : path
  const name = plainName(file)
  const format = formatNames.find(candidate => formats[candidate].fileName.test(name))
  if (format !== undefined) return format
  const unsupported = unsupportedName(file)
  if (unsupported !== undefined) throw new UnknownFormatError(unsupported)
  const what =
    path === '-' ? 'the format of standard input is unknown' : `${path}: the file name does not determine the format`
  throw new UnknownFormatError(`${what}: give format as one of ${formatNames.join(', ')}`)
}

/** @returns undefined if neither the format nor the name determines it */
export function inputKind(data: string, format: Format | undefined): InputKind | undefined {
  if (isBuiltIn(data)) return data
  if (format !== undefined) return format
  try {
    return guessFormat(data)
  } catch (error) {
    if (error instanceof UnknownFormatError) return undefined
    throw error
  }
}

/** Options that every kind of input either takes or refuses. */
const inputOptions = [...TABLE_OPTIONS, 'labels', 'noise'] as const satisfies readonly InputOption[]

/** @throws StreamOptionsError for an option that the input would ignore */
export function refuseOtherOptions(input: string, taken: readonly InputOption[], options: InputOptions): void {
  for (const option of inputOptions) {
    const value = options[option]
    if (
      value === undefined ||
      (value === false && option !== 'header') ||
      value === 'none' ||
      value === 'auto' ||
      taken.includes(option)
    )
      continue
    const takers = Object.entries({ ...formats, ...builtInStreams })
      .filter(([, definition]) => (definition.options as readonly InputOption[]).includes(option))
      .map(([name]) => name)
    throw new StreamOptionsError(`${option} has no meaning for ${input}, only for ${takers.join(', ')}: remove it`)
  }
}
