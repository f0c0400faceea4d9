/**
 * The layer file: the arrays of each block (weights, average, optimizer state) in two slots each, and a commit record that names
 * the slot of each block. A step writes to the slots that the record does not name, so a crash loses no more than the step.
 */
import { closeSync, constants, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { CodedError } from '../../base/errors.js'
import { makeFolder } from '../../base/files.js'
import type { Blocks } from '../../learning/index.js'
import { lazyBlocks } from '../../nn/blocks.js'
import { FLOAT_BYTES } from '../../nn/types.js'

/** A layer file or its commit record is damaged, or belongs to another model. */
export class DamagedLayersError extends CodedError {
  static override readonly code = 'ERR_LAYERS_DAMAGED'
  constructor(folder: string, what: string) {
    super(
      `the layer file in ${folder} is damaged (${what}): restore the directory from a backup, or train in another --dir`
    )
  }
}

/** A layer file cannot be written: the disk is full or read-only, or a limit is exceeded. */
export class LayersWriteError extends CodedError {
  static override readonly code = 'ERR_LAYERS_WRITE'
  constructor(folder: string, cause: string) {
    super(`cannot write the layer file in ${folder} (${cause}): free some space or fix its permissions`)
  }
}

/** Alignment of arrays in memory and in the file, which direct I/O requires. */
export const PAGE_BYTES = 4096
/** Slots of a block. */
const SLOTS = 2

const FILE = 'layers.bin'
const RECORD = 'commit.json'
const FORMAT = 1

/** Numbers of each array of each block: weights, average unless it is the weights, state. */
export type ArrayLengths = readonly (readonly number[])[]

export function aligned(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
}

/** Where arrays are in the file. */
export class FileLayout {
  /** Bytes of the file. */
  readonly bytes: number
  /** Index of a block's first array in tables of all arrays. */
  readonly first: readonly number[]
  /** Number of arrays of all blocks. */
  readonly arrays: number
  /** Aligned bytes of each block's arrays. */
  readonly blockBytes: readonly number[]
  readonly #starts: readonly number[]

  constructor(readonly lengths: ArrayLengths) {
    const first: number[] = []
    const starts: number[] = []
    let [arrays, bytes] = [0, 0]
    this.blockBytes = lengths.map(block => block.reduce((sum, length) => sum + aligned(length * FLOAT_BYTES), 0))
    for (const [block, { length }] of lengths.entries()) {
      first.push(arrays)
      starts.push(bytes)
      arrays += length
      bytes += SLOTS * this.blockBytes[block]
    }
    this.first = first
    this.arrays = arrays
    this.bytes = bytes
    this.#starts = starts
  }

  /** Byte position of an array. */
  position(block: number, array: number, slot: number): number {
    let at = this.#starts[block] + slot * this.blockBytes[block]
    for (let i = 0; i < array; i++) at += aligned(this.lengths[block][i] * FLOAT_BYTES)
    return at
  }

  /** Index of the checksum of an array in a slot. */
  checksumIndex(block: number, array: number, slot: number): number {
    return SLOTS * (this.first[block] + array) + slot
  }
}

/** What a commit stores besides the arrays. */
export interface Commit {
  /** Slot of each block. */
  readonly slots: readonly number[]
  /** CRC-32 of each array in that slot, signed. */
  readonly checksums: readonly number[]
  readonly lengths: ArrayLengths
  /** State of the run, as JSON. */
  readonly content: unknown
}

export const layerFile = (folder: string) => join(folder, FILE)
export const commitFile = (folder: string) => join(folder, RECORD)

/** The first line is the checksum of the second. */
export function commitText(commit: Commit): string {
  const text = JSON.stringify({ format: FORMAT, ...commit })
  return `${crc32(text)}\n${text}\n`
}

/** Whether the folder holds a commit. */
function hasCommit(folder: string): boolean {
  return existsSync(commitFile(folder))
}

/**
 * The last commit; undefined if there is none.
 * @throws DamagedLayersError
 */
export function readCommit(folder: string): Commit | undefined {
  if (!hasCommit(folder)) return undefined
  const [checksum, text] = readFileSync(commitFile(folder), 'utf8').split('\n')
  if (text === undefined || Number(checksum) !== crc32(text)) {
    throw new DamagedLayersError(folder, `${RECORD} does not match its checksum`)
  }
  const { format, ...commit } = JSON.parse(text) as Commit & { readonly format: number }
  if (format !== FORMAT) {
    throw new DamagedLayersError(folder, `${RECORD} has format ${format}, and this version reads format ${FORMAT}`)
  }
  const { bytes } = new FileLayout(commit.lengths)
  const size = statSync(layerFile(folder), { throwIfNoEntry: false })?.size
  if (size !== bytes) throw new DamagedLayersError(folder, `${FILE} has ${size ?? 'no'} bytes instead of ${bytes}`)
  return commit
}

/** Opens the layer file for reading and writing, creating it. @throws the errors of `openSync` */
export function openLayers(folder: string, isDirect: boolean): number {
  makeFolder(folder)
  const flags = constants.O_RDWR | constants.O_CREAT
  if (isDirect) {
    try {
      return openSync(layerFile(folder), flags | constants.O_DIRECT)
    } catch (error) {
      // Not all file systems support direct I/O.
      if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
    }
  }
  return openSync(layerFile(folder), flags)
}

/** Reads committed arrays, one at a time. */
export class LayerReader {
  readonly #layout: FileLayout

  constructor(
    private readonly folder: string,
    private readonly commit: Commit
  ) {
    this.#layout = new FileLayout(commit.lengths)
  }

  get blocks(): number {
    return this.commit.lengths.length
  }

  /** Number of arrays of a block. */
  arrays(block: number): number {
    return this.commit.lengths[block].length
  }

  /** @throws DamagedLayersError */
  read(block: number, array: number): Float32Array {
    const { lengths, slots, checksums } = this.commit
    const numbers = new Float32Array(lengths[block][array])
    const bytes = new Uint8Array(numbers.buffer)
    const file = openSync(layerFile(this.folder), 'r')
    try {
      readAll(file, bytes, this.#layout.position(block, array, slots[block]))
    } finally {
      closeSync(file)
    }
    if ((crc32(bytes) | 0) !== checksums[this.#layout.first[block] + array]) {
      throw new DamagedLayersError(this.folder, `array ${array} of block ${block} does not match its checksum`)
    }
    return numbers
  }

  /** Arrays that are read each time they are accessed, so that they need not be in memory together. */
  lazy(arrays: readonly (readonly [block: number, array: number])[]): Blocks {
    return lazyBlocks(arrays.length, k => this.read(...arrays[k]))
  }
}

/** @throws RangeError at the end of the file */
export function readAll(file: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) {
    const count = readSync(file, bytes, done, bytes.length - done, position + done)
    if (count === 0) throw new RangeError('the file is too short')
    done += count
  }
}

/**
 * @param hasAverage whether the second array of a block is its average
 * @param statePositions positions of each block's state in the state of all blocks
 */
export function storedBlocks(
  reader: LayerReader,
  hasAverage: boolean,
  statePositions: readonly (readonly number[])[]
): { readonly parameters: Blocks; readonly average: Blocks; readonly state: Blocks } {
  const blocks = Array.from({ length: reader.blocks }, (_, block) => block)
  const each = (array: number) => reader.lazy(blocks.map(block => [block, array] as const))
  const state: (readonly [block: number, array: number])[] = []
  for (const [block, positions] of statePositions.entries()) {
    for (const [i, position] of positions.entries()) state[position] = [block, i + (hasAverage ? 2 : 1)]
  }
  return { parameters: each(0), average: each(hasAverage ? 1 : 0), state: reader.lazy(state) }
}
