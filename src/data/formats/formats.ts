/** The registry of file formats and built-in streams. A new one is one file and one line here. */

import { StreamOptionsError, UnknownFormatError } from '../errors.js'
import { digits, digitsTest, synthetic } from './builtins.js'
import { csv, parquet } from './csv.js'
import { customInputOptions } from './custom.js'
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
type BuiltInStream = keyof typeof builtInStreams
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

/** Formats that are not read, with how to convert them: known by a file's name, or by its first bytes. */
interface Unsupported {
  readonly what: string
  /** Ending of the file's name. */
  readonly name?: RegExp
  /** First bytes. */
  readonly magic?: readonly number[]
  /** Replaces FILE by the path. */
  readonly remedy: string
}

const UNSUPPORTED: readonly Unsupported[] = [
  {
    what: 'Arrow',
    name: /\.(arrow|feather)$/,
    magic: [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31],
    remedy: 'convert it to Parquet or CSV'
  },
  { what: 'an Excel workbook', name: /\.xlsx?$/, remedy: 'save it as CSV (UTF-8)' },
  { what: 'one JSON document', name: /\.json$/, remedy: "convert it to JSON lines: jq -c '.[]' FILE > data.jsonl" },
  { what: 'a zip archive', name: /\.zip$/, magic: [0x50, 0x4b, 0x03, 0x04], remedy: 'unpack it: unzip FILE' },
  { what: 'bzip2', name: /\.bz2$/, magic: [0x42, 0x5a, 0x68], remedy: 'unpack it: bunzip2 FILE' },
  { what: 'xz', name: /\.xz$/, magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], remedy: 'unpack it: unxz FILE' }
]

/** The error for a file with such a name; undefined if it may be supported. */
function unsupportedName(path: string): string | undefined {
  const found = UNSUPPORTED.find(({ name }) => name?.test(path.toLowerCase()))
  return found && message(found, path)
}

/** @throws UnknownFormatError if the first bytes are those of a format that is not read */
export function refuseUnsupported(first: Uint8Array, source: string): void {
  const found = UNSUPPORTED.find(({ magic }) => magic?.every((byte, index) => first[index] === byte))
  if (found !== undefined) throw new UnknownFormatError(message(found, source))
  // The last newline may be one that the reader has added.
  const newline = first.indexOf(0x0a)
  if (
    newline >= first.length - 1 &&
    first.subarray(0, newline).includes(0x0d, 0) &&
    first.indexOf(0x0d) < newline - 1
  ) {
    throw new UnknownFormatError(
      `${source}: the lines end in carriage returns alone: convert them: tr '\\r' '\\n' < FILE`
    )
  }
}

function message({ what, remedy }: Unsupported, path: string): string {
  return `${path} is ${what}, which is not read: ${remedy.replace('FILE', path)}`
}
