/**
 * The files that a stream reads one after another, and where it continues in them. A log that was rotated while it was not read is
 * finished first, by its content, then the files that rotation made after it, then the new file.
 */
import { existsSync } from 'node:fs'
import type { SourceOptions } from '../options.js'
import { readSource } from '../source.js'
import { type FilePosition, holds, type ReadAt } from './file-position.js'
import { filesOf, isFileSet, logsOf, rotatedFiles, withRotated } from './files.js'

/** A file, or the rest of one. */
export interface Segment {
  /** The file that is read. */
  readonly file: string
  /** Its first byte. `path` is the name under which the stream knows it, also after it was renamed. */
  readonly start: FilePosition
}

/** A segment that is read once. */
export interface Piece {
  /** Name in messages. */
  readonly name: string
  /** The first byte, under the name by which positions know the file. */
  readonly start: FilePosition
  readonly readAt: ReadAt
  read(): AsyncGenerator<Uint8Array>
  /** Whether an incomplete last row is not a row, because the file was cut. */
  readonly isCut: boolean
  /** Set by the reader: the position of the next row. */
  position?: () => FilePosition
}

export interface ByteSourceOptions extends SourceOptions {
  /** Whether to wait for more at the end. @default false */
  readonly follow?: boolean
}

/** The files from a position on. */
export interface Plan {
  readonly segments: readonly Segment[]
  /** Whether the first one continues where the position was taken. */
  readonly isSame: boolean
  /** One line for the log. */
  readonly notice?: string
}

export interface ByteSource {
  /** Whether rows can be read again. */
  readonly isReplayable: boolean
  /**
   * The pieces from a position on.
   * @param once whether to end at the present end of a source that grows
   */
  pieces(from: FilePosition | undefined, once?: boolean): AsyncIterable<Piece>
  /** Checks that a position still exists. */
  resume(from: FilePosition): Promise<Omit<Plan, 'segments'>>
  /**
   * The position of the first row that begins at or after an offset, or at the end.
   * @param first the position after the first rows, which have the header
   * @throws StreamOptionsError if the source has no offsets
   */
  locate(from: 'now' | number, first: FilePosition | undefined): Promise<FilePosition | undefined>
}

/** The files of an input, in order. @throws MissingInputError */
export async function inputFiles(data: string): Promise<string[]> {
  return (await isFileSet(data)) ? filesOf(data) : [data]
}

/** A file from its start. */
export function wholeFile(path: string, name = path): Segment {
  return { file: path, start: { path: name, offset: 0, line: 0 } }
}

/** The segments of logs, each after the files of the set that rotation has made of it. */
export async function segmentsOf(logs: readonly string[], files: readonly string[]): Promise<Segment[]> {
  const segments = await Promise.all(
    logs.map(async log => (await withRotated(log, files)).map(file => wholeFile(file, log)))
  )
  return segments.flat()
}

/** @throws MissingInputError, UnreadableInputError */
export async function planFrom(
  data: string,
  from: FilePosition | undefined,
  { follow: follows = false, encoding }: Pick<ByteSourceOptions, 'follow' | 'encoding'> = {}
): Promise<Plan> {
  const files = await inputFiles(data)
  if (from === undefined) return { segments: await segmentsOf(logsOf(files), files), isSame: true }
  const { path } = from
  const later = logsOf(files, path).filter(log => log > path)
  const rest = await segmentsOf(later, files)
  const isThere = files.includes(path)
  if (isThere && (await holds(readerOf(path, encoding), from))) {
    return { segments: [{ file: path, start: from }, ...rest], isSame: true }
  }
  const rotated = await planRotated(from, encoding)
  if (rotated !== undefined) {
    const notice = `${path} was rotated: continuing in ${rotated[0].file}`
    return { segments: [...rotated, ...(isThere ? [wholeFile(path)] : []), ...rest], isSame: true, notice }
  }
  if (!isThere) {
    const waits = follows ? ': waiting for a file of that name or a later one' : ''
    const next = rest.length === 0 ? waits : `: continuing with ${rest[0].file}`
    return { segments: rest, isSame: false, notice: `${path} is gone${next}` }
  }
  const notice = `${path} is not the file that was read before (its content differs): it is read from its beginning, and what was not read of the earlier file is lost`
  return { segments: [wholeFile(path), ...rest], isSame: false, notice }
}

/** The rotated file that has the position, and those after it. @returns undefined if there is none */
export async function planRotated(from: FilePosition, encoding?: string): Promise<Segment[] | undefined> {
  const rotated = await rotatedFiles(from.path)
  for (const [index, { path, inode }] of rotated.entries()) {
    if (!(await holds(readerOf(path, encoding), from))) continue
    const newer = rotated.slice(index + 1).filter(file => file.inode !== inode)
    return [{ file: path, start: from }, ...newer.map(file => wholeFile(file.path, from.path))]
  }
  return undefined
}

/** Reads a file from an offset; a file that has disappeared is empty. */
function readerOf(path: string, encoding: string | undefined): (offset: number) => AsyncGenerator<Uint8Array> {
  return offset => (existsSync(path) ? readSource(path, { encoding }, offset) : nothing())
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** The rest of a segment's file. */
export function filePiece(segment: Segment, options: SourceOptions): Piece {
  const { file, start } = segment
  return {
    name: file,
    start,
    isCut: false,
    read: () => readSource(file, options, start.offset),
    readAt: offset => readSource(file, { encoding: options.encoding }, offset)
  }
}
