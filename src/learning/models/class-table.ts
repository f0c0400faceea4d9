/**
 * Classes that are added to a model while it learns. The names that were added are part of the parameters, in a block of float32
 * numbers, one byte a number. So every predictor has its own numbering, which its digest covers: peers that hold the same predictor
 * have the same one, and a number never changes on its lineage.
 *
 * A peer that receives an input with a new name adds a proposal to its gradient sum, in a block of the same layout. Proposals are
 * added up like gradients; a record whose numbers are multiples of one valid name is that name. An update assigns the names of its
 * batch to the free slots, sorted, so all peers that compute the update agree. Two names in one record are unreadable, and are
 * proposed again in other records (an invertible Bloom lookup table with one hash: Goodrich and Mitzenmacher, 2011).
 */
import { type CarriedBlock, placeOf } from '../rules/carried.js'
import type { Blocks, Layout } from '../types.js'

/** Numbers of a record: how many times it was added, two checksums of 12 bits, the length of the name, and its bytes. */
const RECORD = 64
const HEAD = 4
/** Longest name that can be added, in bytes of UTF-8. */
const MAX_NAME_BYTES = RECORD - HEAD

/** Length of a block with room for some classes. */
export function tableLength(slots: number): number {
  return slots * RECORD
}

/** The names in a table, in the order of their class numbers. */
export function addedClasses(table: Float32Array): readonly string[] {
  const names: string[] = []
  for (let at = 0; at < table.length && table[at] !== 0; at += RECORD) names.push(nameIn(table, at) ?? '')
  return names
}

/** Number of names in a table. */
export function countAdded(table: Float32Array): number {
  let count = 0
  while (count * RECORD < table.length && table[count * RECORD] !== 0) count++
  return count
}

/** Whether a table has room for one more name. */
export function hasFreeSlot(table: Float32Array): boolean {
  return countAdded(table) * RECORD < table.length
}

/** Whether a name can be added to a table. */
export function fitsTable(name: string): boolean {
  const length = bytesOf(name).length
  return length > 0 && length <= MAX_NAME_BYTES
}

/** A copy of a table with one more name. @returns undefined if it is full */
export function withClass(table: Float32Array, name: string): Float32Array | undefined {
  const next = table.slice()
  const at = countAdded(table) * RECORD
  if (at === table.length) return undefined
  addRecord(next, at, name)
  return next
}

/**
 * Adds a proposal to a sum.
 * @param round a number that differs between updates, so that names that share a record once do not share it again
 */
export function propose(sum: Float32Array, name: string, round: number): void {
  const slots = sum.length / RECORD
  addRecord(sum, (hashOf(name, round) % slots) * RECORD, name)
}

/** The table after an update: the names of the sum follow, sorted, as long as there is room. @param named names that have numbers */
export function adopted(table: Float32Array, sum: Float32Array, named: readonly string[]): Float32Array {
  const known = new Set([...named, ...addedClasses(table)])
  const names = new Set<string>()
  for (let at = 0; at < sum.length; at += RECORD) {
    const name = sum[at] > 0 ? nameIn(sum, at) : undefined
    if (name !== undefined && !known.has(name)) names.add(name)
  }
  let next = table
  for (const name of [...names].sort()) next = withClass(next, name) ?? next
  return next
}

/** Whether all classes of a table have the same numbers in another one, so that gradients at the first can be used at the second. */
export function extendsTable(table: Float32Array, other: Float32Array): boolean {
  const end = countAdded(table) * RECORD
  for (let i = 0; i < end; i++) if (table[i] !== other[i]) return false
  return true
}

/** The table as a block of predictors. */
export class ClassTable implements CarriedBlock {
  readonly name = 'classes'
  readonly length: number
  readonly #place: number

  /**
   * @param named names of the classes that are not in it
   * @param slots number of classes that can be added
   * @param layout of the parameters of the model that carries it
   */
  constructor(
    readonly named: readonly string[],
    slots: number,
    layout: Layout
  ) {
    this.length = tableLength(slots)
    this.#place = placeOf(this.name, layout)
  }

  initial(): Float32Array {
    return new Float32Array(this.length)
  }

  next(table: Float32Array, proposals: Float32Array): Float32Array {
    return adopted(table, proposals, this.named)
  }

  /** The table of parameters, or the proposals of a sum. */
  of(blocks: Blocks): Float32Array {
    return blocks[this.#place]
  }

  /** The names of all classes of a predictor, in the order of their numbers. */
  namesIn(parameters: Blocks): string[] {
    return [...this.named, ...addedClasses(this.of(parameters))]
  }
}

function addRecord(block: Float32Array, at: number, name: string): void {
  const bytes = bytesOf(name)
  block[at]++
  block[at + 1] += hashOf(name, 1) & 0xfff
  block[at + 2] += hashOf(name, 2) & 0xfff
  block[at + 3] += bytes.length
  for (let i = 0; i < bytes.length; i++) block[at + HEAD + i] += bytes[i]
}

/** The name of a record that was added any number of times; undefined if it holds several names or nothing. */
function nameIn(block: Float32Array, at: number): string | undefined {
  const count = block[at]
  const length = block[at + 3] / count
  if (!(Number.isInteger(count) && Number.isInteger(length) && length >= 1 && length <= MAX_NAME_BYTES))
    return undefined
  const bytes = new Uint8Array(length)
  for (let i = 0; i < MAX_NAME_BYTES; i++) {
    const byte = block[at + HEAD + i] / count
    if (!(Number.isInteger(byte) && byte >= 0 && byte <= (i < length ? 255 : 0))) return undefined
    if (i < length) bytes[i] = byte
  }
  const name = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  const isIntact = [1, 2].every(i => block[at + i] / count === (hashOf(name, i) & 0xfff))
  return isIntact && bytesOf(name).length === length ? name : undefined
}

function bytesOf(name: string): Uint8Array {
  return new TextEncoder().encode(name)
}

/** FNV-1a over the bytes, with a finaliser. */
function hashOf(name: string, seed: number): number {
  let hash = Math.imul(seed + 1, 0x9e3779b1) ^ 0x811c9dc5
  for (const byte of bytesOf(name)) hash = Math.imul(hash ^ byte, 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}
