/**
 * Durable state of a peer in one Level database: identity, incarnation, last checkpoint. Large values are in files. Every write is
 * one synced batch, so a crash at any instant leaves either the old or the new state, and the incarnation is on disk before the
 * first message of a run is sent. A marker file next to the database distinguishes a new directory from one whose database was
 * lost. A predictor is stored block by block (a network: layer by layer).
 */
import { LargeValues } from '#large-values'
import { assertNew, lockState, readMarker, writeMarker } from '#marker'
import {
  blockKey,
  type Checkpoint,
  type CheckpointState,
  type Database,
  encode,
  type Generation,
  headKey,
  type JournalAppend,
  JournalKeys,
  type ModelCheckpoint,
  type NewCheckpoint,
  type NewSteps,
  openDatabase,
  readOrDamaged,
  type StartedRun,
  type StoredHistory,
  type StoredSteps,
  stepKeys,
  text
} from './database.js'
import {
  DamagedStateError,
  MissingStateError,
  ModelMismatchError,
  NetworkMismatchError,
  StateWriteError
} from './errors.js'

/** A random number for a run. */
export function drawNonce(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]
}

type Bytes = Uint8Array

/** Records of the peer itself. */
const KEPT: ReadonlySet<string> = new Set(['identity', 'network-id', 'members', 'privacy'])

/** Keys of the parts of a predictor that is being downloaded. */
const PARTS = 'part/'

/** Blocks are written in batches of at least this many bytes. The database copies a batch several times. */
const BATCH_BYTES = 2 ** 22

export class Store {
  readonly #directory: string
  readonly #database: Database
  readonly #large: LargeValues
  #identity: Bytes | undefined
  #generation: Generation = { number: 0, blocks: 0 }
  readonly #journal = new JournalKeys()
  readonly #unlock: () => void

  private constructor(
    directory: string,
    database: Database,
    large: LargeValues,
    identity: Bytes | undefined,
    unlock: () => void
  ) {
    this.#unlock = unlock
    this.#directory = directory
    this.#database = database
    this.#large = large
    this.#identity = identity
  }

  /**
   * Opens the state directory, creating it if it does not exist.
   * @throws StateInUseError, DamagedStateError, StateWriteError
   */
  static async open(directory: string): Promise<Store> {
    const unlock = await lockState(directory)
    try {
      return await Store.#open(directory, unlock)
    } catch (error) {
      unlock()
      throw error
    }
  }

  static async #open(directory: string, unlock: () => void): Promise<Store> {
    const marker = await readMarker(directory)
    if (marker === undefined) await assertNew(directory)
    const database = await openDatabase(directory, marker === undefined)
    try {
      const identity = await readOrDamaged(directory, () => database.get('identity'))
      if (marker !== undefined && identity === undefined)
        throw new DamagedStateError(directory, 'its database contains no identity')
      // The process crashed between the two writes of `create`.
      if (marker === undefined && identity !== undefined) await writeMarker(directory)
      const large = await readOrDamaged(directory, () => LargeValues.open(directory, database))
      return new Store(directory, database, large, identity, unlock)
    } catch (error) {
      await database.close()
      throw error
    }
  }

  /**
   * Opens an existing state directory.
   * @throws MissingStateError, and the errors of `open`
   */
  static async openExisting(directory: string): Promise<Store> {
    if ((await readMarker(directory)) === undefined) throw new MissingStateError(directory)
    return Store.open(directory)
  }

  /** The peer's private key, undefined in a new directory. */
  get identity(): Bytes | undefined {
    return this.#identity
  }

  /** Stores the identity in a new directory. */
  async create(identity: Bytes): Promise<void> {
    await this.#write([['identity', identity]])
    this.#identity = identity
    await writeMarker(this.#directory)
  }

  /** The model of the stored predictor, as JSON text; undefined before the first `begin`. */
  async model(): Promise<string | undefined> {
    return text(await readOrDamaged(this.#directory, () => this.#database.get('model')))
  }

  /** Id of the network that the state belongs to; undefined if it has none. */
  async networkId(): Promise<string | undefined> {
    return text(await readOrDamaged(this.#directory, () => this.#database.get('network-id')))
  }

  /** The budget of differential privacy, as JSON text; undefined if inputs are not protected. */
  async privacy(): Promise<string | undefined> {
    return text(await readOrDamaged(this.#directory, () => this.#database.get('privacy')))
  }

  /**
   * The id of the network that a run joins: the given one, or that of the state.
   * @throws NetworkMismatchError if they differ
   */
  async networkFor(given: string | undefined): Promise<string | undefined> {
    const stored = await this.networkId()
    if (stored !== undefined && given !== undefined && stored !== given)
      throw new NetworkMismatchError(this.#directory, stored, given)
    return given ?? stored
  }

  /** What `saveMembers` has stored last, undefined if nothing. */
  async members(): Promise<string | undefined> {
    return text(await readOrDamaged(this.#directory, () => this.#database.get('members')))
  }

  /** Stores who belongs to the network, as text: durable when this resolves. */
  async saveMembers(members: string): Promise<void> {
    await this.#write([['members', encode(members)]])
  }

  /**
   * Starts a run: the next incarnation is durable when this resolves.
   * @param model canonical JSON of everything that determines the meaning of the predictor; must equal the stored one
   * @param networkId from `networkFor`
   * @throws ModelMismatchError, DamagedStateError, StateWriteError
   */
  async begin(model: string, networkId?: string): Promise<StartedRun> {
    const before = await this.model()
    if (before !== undefined && before !== model) throw new ModelMismatchError(this.#directory, before, model)
    const stored = text(await readOrDamaged(this.#directory, () => this.#database.get('incarnation')))
    const last = stored === undefined ? 0 : Number(stored)
    if (!Number.isSafeInteger(last) || last < 0 || (before === undefined) !== (stored === undefined)) {
      throw new DamagedStateError(this.#directory, `its incarnation is ${stored}`)
    }
    const checkpoint = await this.checkpoint()
    const journal = await readOrDamaged(this.#directory, async () => {
      const stored = await this.#journal.read(this.#database)
      return { ...stored, unsent: stored.unsent ?? (await this.#large.get('unsent')) }
    })
    await this.#dropUnfinished()
    const incarnation = last + 1
    await this.#write([
      ['model', encode(model)],
      ...(networkId === undefined ? [] : [['network-id', encode(networkId)] as const]),
      ['incarnation', encode(String(incarnation))]
    ])
    return { incarnation, nonce: drawNonce(), checkpoint, journal }
  }

  /** Appends to the journal: durable when this resolves. */
  async append(append: JournalAppend): Promise<void> {
    const { records, dropped } = this.#journal.append(append)
    await this.#write(records, dropped)
  }

  /** The last checkpoint. */
  async checkpoint(): Promise<Checkpoint | undefined> {
    const [head, generation, progress] = await readOrDamaged(this.#directory, () =>
      this.#database.getMany(['predictor', 'generation', 'progress'])
    )
    const found = [head, generation, progress].filter(record => record !== undefined).length
    if (found === 0) return undefined
    if (found < 3) throw new DamagedStateError(this.#directory, 'its checkpoint is incomplete')
    try {
      this.#generation = JSON.parse(text(generation) as string) as Generation
      const { blocks, steps = 0 } = this.#generation
      return { head: head as Bytes, blocks, steps, progress: JSON.parse(text(progress) as string) }
    } catch {
      throw new DamagedStateError(this.#directory, 'its progress record is not valid JSON')
    }
  }

  /** A record of steps of the last checkpoint; call `checkpoint` first. @throws DamagedStateError if it is missing */
  async steps(index: number): Promise<StoredSteps> {
    const keys = stepKeys(this.#generation.number, index)
    const [head, sums] = await Promise.all(keys.map(key => this.#get(key)))
    if (head && sums) return { head, sums }
    throw new DamagedStateError(this.#directory, `step ${index} of its predictor is missing`)
  }

  /** What an audit needs. */
  async history(): Promise<StoredHistory> {
    const heads: Bytes[] = []
    const checkpoint = await this.checkpoint()
    if (checkpoint !== undefined) heads.push(checkpoint.head)
    for (let i = 0; i < (checkpoint?.steps ?? 0); i++) heads.push((await this.steps(i)).head)
    return readOrDamaged(this.#directory, () => this.#journal.history(this.#database, heads))
  }

  /** A block of the last checkpoint; call `checkpoint` first. @throws DamagedStateError if it is missing */
  async block(index: number): Promise<Bytes> {
    const block = await this.#get(blockKey(this.#generation.number, index))
    if (block === undefined) throw new DamagedStateError(this.#directory, `block ${index} of its predictor is missing`)
    return block
  }

  /**
   * Stores predictor and progress durably. The blocks of a large predictor are written in several batches next to the old
   * ones, and the last batch commits them; a crash before it leaves the previous checkpoint intact. All records of the journal up to
   * the checkpoint must be durable, and checkpoints are stored one after the other.
   */
  async save(checkpoint: NewCheckpoint): Promise<void> {
    await this.#save(checkpoint)
  }

  /**
   * Replaces the model, and the checkpoint by one of that model, in one write. Call `checkpoint` before.
   * @param model as in `begin`
   * @param checkpoint undefined if there is none
   */
  async convert(model: string, checkpoint: NewCheckpoint | undefined): Promise<void> {
    if (checkpoint === undefined) await this.#write([['model', encode(model)]])
    else await this.#save({ ...checkpoint, model })
  }

  /** Whether a peer has learned in this directory since the last training in one process. */
  async hasJournal(): Promise<boolean> {
    return await readOrDamaged(this.#directory, () => this.#journal.isWritten(this.#database))
  }

  async #save({ head, blocks, model, ...state }: ModelCheckpoint): Promise<void> {
    const before = this.#generation
    const number = before.number + 1
    let batch: [string, Bytes][] = []
    let bytes = 0
    let count = 0
    for await (const block of blocks) {
      batch.push([blockKey(number, count++), block])
      bytes += block.length
      if (bytes < BATCH_BYTES) continue
      await this.#write(batch)
      batch = []
      bytes = 0
    }
    batch.push(['predictor', head])
    if (model !== undefined) batch.push(['model', encode(model)])
    const old = [
      ...Array.from({ length: before.blocks }, (_, index) => blockKey(before.number, index)),
      ...Array.from({ length: before.steps ?? 0 }, (_, index) => stepKeys(before.number, index)).flat()
    ]
    await this.#commit({ number, blocks: count }, state, batch, old)
  }

  /** Stores the steps since the last checkpoint, and progress, in one batch. */
  async saveSteps({ steps, ...state }: NewSteps): Promise<void> {
    const { number, blocks, steps: count = 0 } = this.#generation
    if (steps === undefined) return this.#commit(this.#generation, state, [], [])
    const [head, sums] = stepKeys(number, count)
    await this.#commit(
      { number, blocks, steps: count + 1 },
      state,
      [
        [head, steps.head],
        [sums, steps.sums]
      ],
      []
    )
  }

  async #commit(
    generation: Generation,
    { progress, journalFrom = 0, keepJournal, keptHead }: CheckpointState,
    batch: readonly (readonly [string, Bytes])[],
    old: readonly string[]
  ): Promise<void> {
    const dropped = this.#journal.takeBefore(journalFrom)
    const kept = keepJournal
      ? await readOrDamaged(this.#directory, () => this.#journal.kept(this.#database, dropped))
      : []
    const { number, steps = 0 } = generation
    const records: (readonly [string, Bytes])[] = [
      ...batch,
      ...kept,
      ['generation', encode(JSON.stringify(generation))],
      ['progress', encode(JSON.stringify(progress))]
    ]
    if (keptHead) records.push([headKey(number, steps), keptHead])
    await this.#write(records, [...old, ...dropped])
    this.#generation = generation
  }

  /** A part of the predictor that the peer was downloading; undefined if it is not there. */
  async keptPart(name: string): Promise<Bytes | undefined> {
    return this.#get(`${PARTS}${name}`)
  }

  /** Stores a part of a predictor that is being downloaded, for a later run. */
  async keepPart(name: string, part: Bytes): Promise<void> {
    await this.#write([[`${PARTS}${name}`, part]])
  }

  /** Deletes all parts. */
  async dropParts(): Promise<void> {
    const keys = await readOrDamaged(this.#directory, () => this.#database.keys({ gt: PARTS, lt: 'part0' }).all())
    const large = this.#large.keys.filter(key => key.startsWith(PARTS))
    if (keys.length + large.length > 0) await this.#write([], [...keys, ...large])
  }

  /** Deletes the model and all that was learned, and keeps who this peer is and which network it belongs to. */
  async forgetModel(): Promise<void> {
    const keys = await readOrDamaged(this.#directory, () => this.#database.keys().all())
    await this.#write(
      [],
      [...keys, ...this.#large.keys].filter(key => !KEPT.has(key))
    )
  }

  async close(): Promise<void> {
    await this.#database.close()
    this.#unlock()
  }

  /** Deletes the blocks of a checkpoint that was not committed. */
  async #dropUnfinished(): Promise<void> {
    const keys = await readOrDamaged(this.#directory, () => this.#database.keys({ gt: 'block/', lt: 'block0' }).all())
    const current = blockKey(this.#generation.number, 0).slice(0, -'00000000'.length)
    const large = this.#large.keys.filter(key => key.startsWith('block/'))
    await this.#write(
      [],
      [...keys, ...large].filter(key => !key.startsWith(current))
    )
  }

  /** A value that may be large. */
  #get(key: string): Promise<Bytes | undefined> {
    return readOrDamaged(this.#directory, async () => (await this.#large.get(key)) ?? this.#database.get(key))
  }

  async #write(records: readonly (readonly [string, Bytes])[], dropped: readonly string[] = []): Promise<void> {
    try {
      const batch = await this.#large.prepare(records, dropped)
      const puts = batch.records.map(([key, value]) => ({ type: 'put' as const, key, value }))
      const deletions = batch.dropped.map(key => ({ type: 'del' as const, key }))
      await this.#database.batch([...puts, ...deletions], { sync: true })
      await batch.written()
    } catch (error) {
      throw new StateWriteError(this.#directory, error)
    }
  }
}
