/**
 * Large values of a peer's database in files of their own. The database would copy each of them several times, compress it and copy
 * it again in compactions, for 10 to 20 times the CPU time. `#large-values` under Node.js.
 */
import { mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Database, encode, text } from './database.js'

/** Size from which a value is large, in bytes. */
const LARGE = 2 ** 22
/** Keys of values that may be large. */
const KEYS = /^(block|steps|part)\/|^unsent$/
/** Keys of records that say in which file a value is: its name and its size. */
const PREFIX = 'large/'

type Records = readonly (readonly [string, Uint8Array])[]

/** What to write into the database in one batch. */
interface Batch {
  readonly records: Records
  readonly dropped: readonly string[]
  /** Call it when the batch is durable. */
  readonly written: () => Promise<void>
}

export class LargeValues {
  readonly #folder: string
  /** Name and size of the file of each key. */
  readonly #files: Map<string, string>
  #next = 0

  private constructor(folder: string, files: Map<string, string>) {
    this.#folder = folder
    this.#files = files
  }

  /** Reads which values are in files, and deletes files that a crash has left. */
  static async open(directory: string, database: Database): Promise<LargeValues> {
    const folder = join(directory, 'large')
    const entries = await database.iterator({ gt: PREFIX, lt: 'large0' }).all()
    const files = new Map(entries.map(([key, value]) => [key.slice(PREFIX.length), text(value) as string]))
    const values = new LargeValues(folder, files)
    const used = new Set([...files.values()].map(nameOf))
    for (const name of await namesIn(folder)) {
      values.#next = Math.max(values.#next, Number(name) + 1)
      if (!used.has(name)) await values.#remove(name)
    }
    return values
  }

  /** Keys of large values. */
  get keys(): readonly string[] {
    return [...this.#files.keys()]
  }

  /** @throws Error if the file is damaged */
  async get(key: string): Promise<Uint8Array | undefined> {
    const file = this.#files.get(key)
    if (file === undefined) return undefined
    const [name, size] = file.split(' ')
    const bytes = await readFile(join(this.#folder, name))
    if (bytes.length !== Number(size)) throw new Error(`large/${name} has ${bytes.length} of ${size} bytes`)
    return bytes
  }

  /** Stores large values durably in files. @param dropped keys to delete */
  async prepare(records: Records, dropped: readonly string[]): Promise<Batch> {
    const added = new Map<string, string>()
    const others: (readonly [string, Uint8Array])[] = []
    for (const [key, value] of records) {
      if (value.length < LARGE || !KEYS.test(key)) others.push([key, value])
      else added.set(key, `${await this.#write(value)} ${value.length}`)
    }
    const gone = [...records.map(([key]) => key), ...dropped].filter(key => this.#files.has(key))
    const removed = gone.map(key => nameOf(this.#files.get(key) as string))
    return {
      records: [...others, ...[...added].map(([key, file]) => [PREFIX + key, encode(file)] as const)],
      dropped: [...dropped, ...added.keys(), ...gone.filter(key => !added.has(key)).map(key => PREFIX + key)],
      written: async () => {
        for (const key of gone) this.#files.delete(key)
        for (const [key, file] of added) this.#files.set(key, file)
        for (const name of removed) await this.#remove(name)
      }
    }
  }

  /** @returns the name of the file, which is durable */
  async #write(value: Uint8Array): Promise<string> {
    const name = String(this.#next++)
    await mkdir(this.#folder, { recursive: true })
    await writeFile(join(this.#folder, name), value, { flush: true })
    const folder = await open(this.#folder)
    // Windows cannot sync folders.
    await folder.sync().catch(() => undefined)
    await folder.close()
    return name
  }

  #remove(name: string): Promise<void> {
    return rm(join(this.#folder, name), { force: true })
  }
}

function nameOf(file: string): string {
  return file.split(' ')[0]
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
