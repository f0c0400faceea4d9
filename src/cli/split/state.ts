/** The file of `--state`: what was dealt, so that a later run continues with the same keys, and repeats what was on the way. */
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import * as z from 'zod'
import { CodedError, fileProblem } from '../../base/errors.js'
import type { RawBlock, RawInput, RawPlace } from '../../data/index.js'
import type { DealerState } from './dealer.js'

/** The state cannot be read or written, or belongs to other data or peers. */
export class SplitStateError extends CodedError {
  static override readonly code = 'ERR_SPLIT_STATE'
}

const place = z.object({ source: z.unknown(), skip: z.int().min(0) })
const range = z.object({ place, rows: z.int().min(1) })
const schema = z.object({
  version: z.literal(1),
  data: z.string(),
  /** Where the source continues. */
  from: place.optional(),
  /** Blocks that no peer has accepted. */
  waiting: z.array(range),
  peers: z.array(
    z.object({
      url: z.string(),
      /** The start of its keys. */
      name: z.string(),
      /** Number of its next block. */
      next: z.int().min(1),
      /** Blocks that it may have learned, by number. */
      open: z.array(z.tuple([z.int().min(1), range]))
    })
  )
})

type Stored = z.infer<typeof schema>

/** What a run continues with. */
export interface Resumed {
  readonly names: readonly string[]
  readonly dealer: DealerState<RawBlock>
  readonly from: RawPlace | undefined
}

export class SplitState {
  readonly #file: string
  readonly #lock: string
  readonly #data: string
  readonly #urls: readonly string[]

  /** @param urls of the peers */
  constructor(file: string, data: string, urls: readonly string[]) {
    this.#file = file
    this.#lock = `${file}.lock`
    this.#data = data
    this.#urls = urls
  }

  /** Holds the file until `close`. @param newName a name for a peer that is not in the state @throws SplitStateError */
  async load(input: RawInput, newName: () => string): Promise<Resumed> {
    await this.#hold()
    try {
      return await this.#resumed(input, newName)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async #resumed(input: RawInput, newName: () => string): Promise<Resumed> {
    const { from, waiting, peers } = await this.#read()
    const missing = peers.find(({ url, open }) => open.length > 0 && !this.#urls.includes(url))
    if (missing !== undefined) {
      throw new SplitStateError(
        `${this.#file}: ${missing.url} may have learned rows of the run before: add --to ${missing.url}`
      )
    }
    if (from !== undefined && !(await input.isSame(from as RawPlace))) {
      throw new SplitStateError(
        `${this.#data} is not what was read before (its content differs): remove ${this.#file} to read it from its beginning`
      )
    }
    const blockOf = (one: Stored['waiting'][number]) => this.#blockAt(input, one)
    const known = this.#urls.map(url => peers.find(peer => peer.url === url) ?? { name: newName(), next: 1, open: [] })
    const targets: DealerState<RawBlock>['targets'][number][] = []
    for (const { next, open } of known) {
      const blocks: [number, RawBlock][] = []
      for (const [number, one] of open) blocks.push([number, await blockOf(one)])
      targets.push({ next, open: blocks })
    }
    const blocks: RawBlock[] = []
    for (const one of waiting) blocks.push(await blockOf(one))
    return {
      names: known.map(({ name }) => name),
      dealer: { waiting: blocks, targets },
      from: from as RawPlace | undefined
    }
  }

  /** Durable when it resolves. @throws SplitStateError */
  async save(
    names: readonly string[],
    { waiting, targets }: DealerState<RawBlock>,
    from: RawPlace | undefined
  ): Promise<void> {
    const stored: Stored = {
      version: 1,
      data: this.#data,
      from,
      waiting: waiting.map(rangeOf),
      peers: targets.map(({ next, open }, peer) => ({
        url: this.#urls[peer],
        name: names[peer],
        next,
        open: open.map(([number, block]) => [number, rangeOf(block)])
      }))
    }
    try {
      await writeFile(`${this.#file}.new`, JSON.stringify(stored), { flush: true })
      await rename(`${this.#file}.new`, this.#file)
    } catch (error) {
      throw this.#unwritable(error)
    }
  }

  /** Releases the file for other runs. */
  async close(): Promise<void> {
    await rm(this.#lock, { force: true })
  }

  /** Holds the file for this process. Two runs would give the same keys to different blocks. */
  async #hold(): Promise<void> {
    for (;;) {
      try {
        return await writeFile(this.#lock, `${process.pid}`, { flag: 'wx' })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw this.#unwritable(error)
      }
      const holder = Number(await readFile(this.#lock, 'utf8').catch(() => 'none'))
      if (isRunning(holder)) {
        throw new SplitStateError(
          `${this.#file} is in use by the process ${holder}: wait for its end, give another --state, or remove ${this.#lock} if it is no admb split`
        )
      }
      await this.close()
    }
  }

  #unwritable(error: unknown): SplitStateError {
    return new SplitStateError(`--state ${this.#file} cannot be written (${fileProblem(error)}): give a writable file`)
  }

  async #read(): Promise<Pick<Stored, 'from' | 'waiting' | 'peers'>> {
    let text: string
    try {
      text = await readFile(this.#file, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { from: undefined, waiting: [], peers: [] }
      throw new SplitStateError(`--state ${this.#file} cannot be read (${fileProblem(error)}): check the path`)
    }
    const parsed = schema.safeParse(asJson(text))
    if (!parsed.success) {
      throw new SplitStateError(`--state ${this.#file}: the file is no state of admb split: give another name`)
    }
    if (parsed.data.data === this.#data) return parsed.data
    throw new SplitStateError(
      `${this.#file} is the state of ${parsed.data.data}: give another --state for ${this.#data}`
    )
  }

  /** Reads rows again. */
  async #blockAt(input: RawInput, { place, rows }: Stored['waiting'][number]): Promise<RawBlock> {
    const lines: Uint8Array[] = []
    for await (const block of input.blocks(place as RawPlace)) {
      lines.push(...block.lines.slice(0, rows - lines.length))
      if (lines.length === rows) return { lines, place: place as RawPlace }
    }
    throw new SplitStateError(
      `${this.#data} has fewer rows than before: remove ${this.#file} to read it from its beginning`
    )
  }
}

function rangeOf({ lines, place }: RawBlock): Stored['waiting'][number] {
  return { place: place as RawPlace, rows: lines.length }
}

function isRunning(holder: number): boolean {
  try {
    return holder !== process.pid && process.kill(holder, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
