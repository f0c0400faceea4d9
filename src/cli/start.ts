/**
 * Loads the bundled program, whose files `scripts/build-program.ts` writes. V8 compiles functions when they first run, which is
 * most of the time in which a command starts, so the compiled code of a command is kept in a file for its next start. The file lies
 * in `cache` beside the program or, if that cannot be written, in the user's cache folder. `NODE_DISABLE_COMPILE_CACHE=1` turns this off.
 */
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { cachedDataVersionTag } from 'node:v8'
import { Script } from 'node:vm'
import { crc32 } from 'node:zlib'

/** After this time a process that still runs has used what a start needs. */
const STARTED_MS = 5000
/** Growth of the code from which a file is written anew. Below it, no later process looks. */
const GROWTH = 1.03
const OLD_MS = 60 * 24 * 3600 * 1000
/** Parameters of the function that wraps the code of a part. */
const PARAMETERS = 'exports, require, module, __filename, __dirname, importModule'
/** Alignment in bytes of each part in a file: V8 copies code that is not aligned. */
const ALIGNMENT = 8
/** Checksum of what follows, and the size of the description of the parts, in bytes. */
const HEADER = 8

interface Header {
  /** Name and size in bytes of each part, in order. */
  readonly parts: readonly (readonly [string, number])[]
  /** Whether the last process that used the file had hardly compiled more. */
  readonly isComplete: boolean
}

interface Cached extends Header {
  readonly code: ReadonlyMap<string, Buffer>
  readonly bytes: number
}

const NOTHING: Cached = { parts: [], isComplete: false, code: new Map(), bytes: 0 }

/**
 * Runs a part of the bundle.
 * @param entry its file
 * @param commands each has a file of its own with compiled code
 */
export function start(entry: string, commands: readonly string[] = []): void {
  const command = commands.find(name => name === process.argv[2]) ?? 'admb'
  // The hash in an entry's name changes with every part, and the tag with the version of V8, its flags and the processor.
  const name = [entry.replace(/\.cjs$/, ''), ...(commands.length > 0 ? [command] : []), cachedDataVersionTag()].join(
    '-'
  )
  const program = new Program(isDisabled() ? [] : folders().map(folder => join(folder, `${name}.bin`)))
  program.load(entry)
  program.keepCode()
}

/** Loads a part of the bundle into another program, once. Nothing is kept, as it is not this program that ends. */
export function load(entry: string): unknown {
  library ??= new Program([])
  return library.load(entry)
}

let library: Program | undefined

function isDisabled(): boolean {
  return Boolean(process.env.NODE_DISABLE_COMPILE_CACHE || process.env.NODE_V8_COVERAGE)
}

/** In the order in which they are tried. */
function folders(): readonly string[] {
  const { XDG_CACHE_HOME, LOCALAPPDATA } = process.env
  return [join(import.meta.dirname, 'cache'), join(XDG_CACHE_HOME || LOCALAPPDATA || join(homedir(), '.cache'), 'admb')]
}

class Program {
  readonly #files: readonly string[]
  readonly #cached: Cached
  readonly #scripts = new Map<string, Script>()
  readonly #modules = new Map<string, { exports: unknown }>()
  readonly #require = createRequire(import.meta.filename)
  /** The files as they were found. */
  readonly #found: readonly string[]
  #hasAll = true

  constructor(files: readonly string[]) {
    this.#files = files
    this.#found = files.map(versionOf)
    this.#cached = firstOf(files)
  }

  load(name: string): unknown {
    const known = this.#modules.get(name)
    if (known !== undefined) return known.exports
    const module = { exports: {} }
    this.#modules.set(name, module)
    const filename = join(import.meta.dirname, name)
    const cachedData = this.#cached.code.get(name)
    const script = new Script(`(function(${PARAMETERS}){${readFileSync(filename, 'utf8')}\n})`, {
      filename,
      cachedData
    })
    this.#hasAll &&= cachedData !== undefined && script.cachedDataRejected !== true
    this.#scripts.set(name, script)
    const require = (id: string) => (id.startsWith('./') ? this.load(id.slice(2)) : this.#require(id))
    script.runInThisContext()(module.exports, require, module, filename, import.meta.dirname, importModule)
    return module.exports
  }

  /** Writes the compiled code after the start, or at the exit of a process that ends before. */
  keepCode(): void {
    if (this.#files.length === 0) return
    let isKept = false
    const keep = () => {
      if (isKept || (this.#hasAll && this.#cached.isComplete)) return
      isKept = true
      // One of several processes that start together writes the file.
      if (this.#files.some((file, i) => versionOf(file) !== this.#found[i])) return
      this.#keep()
    }
    setTimeout(keep, STARTED_MS).unref()
    process.once('exit', keep)
  }

  #keep(): void {
    const code = new Map(this.#cached.code)
    for (const [name, script] of this.#scripts) code.set(name, script.createCachedData())
    const bytes = [...code.values()].reduce((sum, part) => sum + part.length, 0)
    const isComplete = this.#hasAll && bytes < GROWTH * this.#cached.bytes
    const parts = [...(isComplete ? this.#cached.code : code)]
    write(this.#files, { parts: parts.map(([name, part]) => [name, part.length]), isComplete }, parts)
  }
}

function importModule(url: string): Promise<unknown> {
  return import(url)
}

/** Changes when the file is replaced. */
function versionOf(file: string): string {
  try {
    const { ino, mtimeMs } = statSync(file)
    return `${ino} ${mtimeMs}`
  } catch {
    return 'none'
  }
}

/** The first file that can be read. */
function firstOf(files: readonly string[]): Cached {
  for (const file of files) {
    try {
      return read(file)
    } catch {
      // It is written later.
    }
  }
  return NOTHING
}

/** @throws Error if the file is missing, not whole, or of another user, who could have put any code into it */
function read(file: string): Cached {
  const descriptor = openSync(file, 'r')
  try {
    const { uid, mode } = fstatSync(descriptor)
    if (mode & 0o022 || !isTrusted(uid)) throw new Error(file)
    const bytes = readFileSync(descriptor)
    // V8 runs what it is given.
    if (crc32(bytes.subarray(4)) !== bytes.readUInt32LE(0)) throw new Error(file)
    const start = HEADER + bytes.readUInt32LE(4)
    const { parts, isComplete }: Header = JSON.parse(bytes.toString('utf8', HEADER, start))
    const code = new Map<string, Buffer>()
    let at = aligned(start)
    for (const [name, size] of parts) {
      code.set(name, bytes.subarray(at, at + size))
      at += aligned(size)
    }
    return { parts, isComplete, code, bytes: parts.reduce((sum, [, size]) => sum + size, 0) }
  } finally {
    closeSync(descriptor)
  }
}

/** Whether it is the user of this process, or the owner of the program, who can change that as well. */
function isTrusted(uid: number): boolean {
  return process.geteuid === undefined || uid === process.geteuid() || uid === statSync(import.meta.filename).uid
}

/** Replaces the file in the first folder in which it can. Without one, the next start takes as long. */
function write(files: readonly string[], header: Header, parts: readonly (readonly [string, Buffer])[]): void {
  const text = Buffer.from(JSON.stringify(header))
  let at = aligned(HEADER + text.length)
  const bytes = Buffer.alloc(at + parts.reduce((sum, [, part]) => sum + aligned(part.length), 0))
  bytes.writeUInt32LE(text.length, 4)
  text.copy(bytes, HEADER)
  for (const [, part] of parts) {
    part.copy(bytes, at)
    at += aligned(part.length)
  }
  bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0)
  for (const file of files) {
    const temporary = `${file}.${process.pid}-${performance.now()}`
    try {
      mkdirSync(dirname(file), { recursive: true, mode: 0o755 })
      writeFileSync(temporary, bytes, { mode: 0o644 })
      renameSync(temporary, file)
      removeOld(dirname(file))
      return
    } catch {
      remove(temporary)
    }
  }
}

/** Files that other processes or users have need not go. */
function remove(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // It stays.
  }
}

/** Earlier versions of the program leave files behind. One that is still used is written again. */
function removeOld(folder: string): void {
  for (const file of readdirSync(folder)) {
    const path = join(folder, file)
    if (Date.now() - statSync(path).mtimeMs > OLD_MS) remove(path)
  }
}

function aligned(size: number): number {
  return Math.ceil(size / ALIGNMENT) * ALIGNMENT
}
