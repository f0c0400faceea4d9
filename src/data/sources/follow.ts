/**
 * Follows files that grow, as `tail -F` does. A file that was renamed is read to its end, then the new one of that name. A file
 * that was truncated is read from its start, after the rows that only its copy still has.
 */
import { type FileHandle, open, stat } from 'node:fs/promises'
import { MissingInputError } from '../errors.js'
import { pause } from '../source.js'
import { logsOf, rotatedFiles } from './files.js'
import {
  type ByteSourceOptions,
  filePiece,
  inputFiles,
  type Piece,
  planRotated,
  type Segment,
  segmentsOf,
  wholeFile
} from './segments.js'

/** Polling interval of a file that does not grow, in milliseconds. */
const POLL_MS = 200
const READ_BYTES = 128 * 1024
/** Bytes before the end that must stay as they are while a file grows. */
const TAIL_BYTES = 64

/** How a file ended: another has its name, it was cut, or a later file of the set exists. */
type Ending = 'renamed' | 'truncated' | 'followed by another'

/**
 * Yields the segments, then what is appended to the last one, and to the files after it, without end.
 * @param gone the file that contained the position, if there are no segments
 */
export async function* followed(
  data: string,
  segments: readonly Segment[],
  options: ByteSourceOptions,
  gone?: string
): AsyncGenerator<Piece> {
  const say = options.onNotice ?? (() => undefined)
  const known = new Set(logsOf(await filesNow(data)))
  let next = segments.length > 0 ? segments : await nextSegments(data, gone as string, options.signal)
  for (;;) {
    for (const segment of next.slice(0, -1)) yield filePiece(segment, options)
    const current = next[next.length - 1]
    const path = current.start.path
    const growing = new GrowingFile(data, current, known, options)
    const piece: Piece = {
      ...filePiece(current, options),
      read: () => growing.read(),
      get isCut() {
        return growing.ending === 'truncated'
      }
    }
    yield piece
    switch (growing.ending) {
      case 'renamed': {
        say(`${path} was rotated: the new file is read from its beginning`)
        const newer = (await rotatedFiles(path)).filter(
          file => file.modified > growing.modified && file.inode !== growing.inode
        )
        next = [...newer.map(file => wholeFile(file.path, path)), wholeFile(path)]
        break
      }
      case 'truncated': {
        const rest = piece.position === undefined ? undefined : await planRotated(piece.position())
        const from = rest === undefined ? '' : `, after the rest of ${rest[0].file}`
        say(`${path} was truncated: it is read from its beginning${from}`)
        next = [...(rest?.slice(0, 1) ?? []), wholeFile(path)]
        break
      }
      case 'followed by another':
        next = await nextSegments(data, path, options.signal)
        break
      default:
        return
    }
  }
}

/** The files of the input, of which there may be none for a while. */
async function filesNow(data: string): Promise<readonly string[]> {
  try {
    return await inputFiles(data)
  } catch (error) {
    if (error instanceof MissingInputError) return []
    throw error
  }
}

/** Waits for a log after the one that has ended; or, if that is gone, for another of its name. */
async function nextSegments(data: string, ended: string, signal: AbortSignal | undefined): Promise<Segment[]> {
  for (;;) {
    const files = await filesNow(data)
    const next = logsOf(files, ended).find(log => log > ended)
    if (next !== undefined) return segmentsOf([next], files)
    if (files.includes(ended)) return [wholeFile(ended)]
    await pause(POLL_MS, signal)
  }
}

class GrowingFile {
  ending: Ending | undefined
  inode = 0
  modified = 0
  readonly #data: string
  readonly #path: string
  readonly #segment: Segment
  /** Logs of the set that have been read, or reported. */
  readonly #known: Set<string>
  readonly #signal: AbortSignal | undefined
  readonly #say: (line: string) => void
  #isDeleted = false

  constructor(data: string, segment: Segment, known: Set<string>, { signal, onNotice }: ByteSourceOptions) {
    this.#data = data
    this.#path = segment.start.path
    this.#segment = segment
    this.#known = known
    this.#signal = signal
    this.#say = onNotice ?? (() => undefined)
  }

  /** Reads until the file is complete. `ending` is then set. */
  async *read(): AsyncGenerator<Uint8Array> {
    const file = await this.#opened()
    const buffer = new Uint8Array(READ_BYTES)
    let { offset } = this.#segment.start
    try {
      for (let isFinal = false; ; ) {
        this.#signal?.throwIfAborted()
        const { bytesRead } = await file.read(buffer, 0, READ_BYTES, offset)
        if (bytesRead > 0) {
          offset += bytesRead
          yield buffer.subarray(0, bytesRead)
          continue
        }
        // What was written before the ending was noticed has now been read.
        if (isFinal) return
        const tail = await tailOf(file, offset)
        if (!(await this.#grew(file, offset, tail))) continue
        isFinal = this.ending !== undefined
        if (this.ending === 'truncated') return
      }
    } finally {
      await file.close()
    }
  }

  /** A log that is being rotated may be missing for a moment. */
  async #opened(): Promise<FileHandle> {
    for (;;) {
      try {
        return await open(this.#segment.file, 'r')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
        await pause(POLL_MS, this.#signal)
      }
    }
  }

  /** Polls the file until it has grown or ended. Sets `ending`. @returns true */
  async #grew(file: FileHandle, offset: number, tail: Uint8Array): Promise<boolean> {
    for (;;) {
      const own = await file.stat()
      this.inode = own.ino
      this.modified = own.mtimeMs
      const isTruncated = own.size < offset || Buffer.compare(await tailOf(file, offset), tail) !== 0
      if (isTruncated) this.ending = 'truncated'
      else {
        const named = await stat(this.#path).catch(() => undefined)
        if (named !== undefined && named.ino !== own.ino) this.ending = 'renamed'
        else if ((named !== undefined || own.nlink === 0) && (await this.#hasNext()))
          this.ending = 'followed by another'
        else if (named === undefined && own.nlink === 0) this.#noteDeleted()
      }
      if (this.ending !== undefined || own.size > offset) return true
      await pause(POLL_MS, this.#signal)
    }
  }

  /** Whether the set has a later log. */
  async #hasNext(): Promise<boolean> {
    if (this.#data === this.#path) return false
    const logs = logsOf(await filesNow(this.#data), this.#path)
    for (const file of logs) {
      if (this.#known.has(file)) continue
      this.#known.add(file)
      if (file < this.#path)
        this.#say(`${file} is new, but its name is before ${this.#path}, which is followed: it is not read`)
    }
    return logs.some(file => file > this.#path)
  }

  /** A rotated log has another name; a file without a name cannot reappear. */
  #noteDeleted(): void {
    if (this.#isDeleted) return
    this.#isDeleted = true
    const later = this.#data === this.#path ? '' : ' or a later one'
    this.#say(`${this.#path} was deleted: waiting for a file of that name${later}`)
  }
}

async function tailOf(file: FileHandle, offset: number): Promise<Uint8Array> {
  const length = Math.min(TAIL_BYTES, offset)
  const { buffer, bytesRead } = await file.read(new Uint8Array(length), 0, length, offset - length)
  return buffer.subarray(0, bytesRead)
}
