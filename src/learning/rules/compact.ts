/**
 * Rules whose state takes eight bits a number instead of 32, for models whose optimizer state would otherwise be larger than the
 * model. The option is part of the rule, because it changes the result: all peers must round alike.
 *
 * Numbers in eight bits: the block-wise dynamic quantisation of Dettmers et al. ("8-bit Optimizers via Block-wise Quantization",
 * ICLR 2022). Every 2,048 numbers share a scale, their largest magnitude. Each is rounded to the nearest of 256 numbers in [−1,
 * 1], which are dense near zero: a sign, a decade and a linear fraction, with fewer bits for the fraction in smaller decades. A
 * non-zero number is never rounded to zero, because it may be a divisor (Li et al., NeurIPS 2023).
 *
 * Rule states are float32 on the wire, in digests and on the disk. So each three codes are packed into a float32, as an integer
 * below 2²⁴, which float32 represents exactly. The scales follow after all codes.
 */
import { SECTION } from '../../numeric/block-code.js'
import { stateBlockIndices } from '../engines/working-content.js'
import { OptionError } from '../options.js'
import type { Blocks, Layout } from '../types.js'
import { type DividingRule, withPureStep } from './definition.js'
import {
  ABOVE_AT,
  addressOf,
  ENTRIES_AT,
  ENTRY_BYTES,
  FIRST_STATE_SLOT,
  isInMemory,
  type KernelMemory,
  kernelMemory,
  NEAREST_AT,
  NUMBERS_AT,
  readBack
} from './kernels.js'

/** How a block of state is encoded; undefined for counters, which stay as they are. */
function encodingOf(stateBlock: string): Encoding | undefined {
  if (stateBlock.endsWith('.mean') || stateBlock.endsWith('.velocity')) return 'signed'
  return stateBlock.endsWith('.square') ? 'squares' : undefined
}

/** @param isElementwise whether the rule looks at each number alone, counters apart, and steps in place */
export function compact(rule: DividingRule, isElementwise: boolean): DividingRule {
  const packed = {
    name: rule.name,
    description: rule.description.replace(/\)$/, ',bits=8)'),
    stateLayout: (layout: Layout) => packedLayout(rule.stateLayout(layout))
  }
  return isElementwise ? withPureStep({ ...packed, ...steppedBySections(rule) }) : { ...packed, ...steppedWhole(rule) }
}

/** Unpacks, steps and packs a section at a time, in the memory of the kernels. */
function steppedBySections(rule: DividingRule): Required<Pick<DividingRule, 'stepInPlace'>> {
  return {
    stepInPlace(now, sum, count, updates, divisor) {
      const { slots } = kernelMemory()
      const { indices, encodings } = stateOf(rule, sum)
      // All sections step with the counters of before.
      const before = now.state.map((block, i) => (encodings[i] === undefined ? block.slice() : block))
      for (const [k, block] of now.parameters.entries()) {
        const { length } = block
        for (let start = 0; start < length; start += SECTION) {
          const end = Math.min(length, start + SECTION)
          const state = indices[k].map((i, position) => {
            const encoding = encodings[i]
            if (encoding === undefined) return before[i].slice()
            const values = slots[FIRST_STATE_SLOT + position].subarray(0, end - start)
            unpack(now.state[i], encoding, length, start, values)
            return values
          })
          const section = { parameters: [block.subarray(start, end)], state }
          rule.stepInPlace?.(section, [sum[k].subarray(start, end)], count, updates, divisor)
          for (const [position, i] of indices[k].entries()) {
            const encoding = encodings[i]
            if (encoding === undefined) now.state[i].set(state[position])
            else pack(state[position], encoding, now.state[i], length, start)
          }
        }
      }
    }
  }
}

function steppedWhole(rule: DividingRule): Pick<DividingRule, 'step'> {
  return {
    step(previous, sum, count, updates, contributors, divisor) {
      const { indices, encodings } = stateOf(rule, sum)
      const state: Float32Array[] = previous.state.map(block => new Float32Array(block.length))
      const parameters = previous.parameters.map((block, k) => {
        const { length } = block
        const unpacked = indices[k].map(i => {
          const encoding = encodings[i]
          if (encoding === undefined) return previous.state[i]
          const values = new Float32Array(length)
          unpack(previous.state[i], encoding, length, 0, values)
          return values
        })
        const stepped = rule.step(
          { parameters: [block], state: unpacked },
          [sum[k]],
          count,
          updates,
          contributors,
          divisor
        )
        for (const [position, i] of indices[k].entries()) {
          const encoding = encodings[i]
          if (encoding === undefined) state[i].set(stepped.state[position])
          else pack(stepped.state[position], encoding, state[i], length, 0)
        }
        return stepped.parameters[0]
      })
      return { parameters, state }
    }
  }
}

/** Indices of the state of each block, and the encoding of each block of state. */
function stateOf(rule: DividingRule, sum: Blocks) {
  const layout = { blocks: sum.map(({ length }, k) => ({ name: String(k), length })) }
  return {
    indices: stateBlockIndices(rule, layout),
    encodings: rule.stateLayout(layout).blocks.map(({ name }) => encodingOf(name))
  }
}

/** @throws OptionError unless the bits are 8, 32 or left out, and go with the other options */
export function isCompact(
  rule: string,
  { bits, radius }: { readonly bits?: number; readonly radius?: number }
): boolean {
  if (bits === undefined || bits === 32) return false
  if (bits !== 8) throw new OptionError(`rule ${rule}: bits must be 8 or 32, not ${bits}`)
  if (radius !== undefined) throw new OptionError(`rule ${rule}: bits=8 and a radius do not go together: remove one`)
  return true
}

function packedLayout({ blocks }: Layout): Layout {
  return {
    blocks: blocks.map(block =>
      encodingOf(block.name) === undefined ? block : { ...block, length: packedLength(block.length), isExact: true }
    )
  }
}

/** Count of numbers that share a scale. */
const SHARED = 2048
const CODES_PER_FLOAT = 3
const DECADES = 7
/** The smallest positive float32. */
const SMALLEST = 2 ** -149

/** What is encoded: signed numbers, or numbers from 0 by their roots, which halves their range. */
export type Encoding = 'signed' | 'squares'

/** Count of float32 numbers into which `pack` packs `length` numbers. */
export function packedLength(length: number): number {
  return cellsFor(length) + Math.ceil(length / SHARED)
}

function cellsFor(length: number): number {
  return Math.ceil(length / CODES_PER_FLOAT)
}

/**
 * Packs part of a vector. Values in the kernels' memory are changed.
 * @param into the packed vector
 * @param length length of the vector
 * @param start first index of the part, a multiple of the length of a section
 */
export function pack(
  values: Float32Array,
  encoding: Encoding,
  into: Float32Array,
  length: number,
  start: number
): void {
  const memory = kernelMemory()
  const { kernels, codes, packed } = memory
  const table = tableOf(encoding, memory)
  const found = packed.length - 1
  for (let from = 0; from < values.length; from += SECTION) {
    const section = values.subarray(from, from + SECTION)
    const count = section.length
    const address = addressOf(section, 0)
    const largest = encoding === 'squares' ? kernels.largestRoot : kernels.largest
    for (let group = 0; group < count; group += SHARED) {
      const grouped = Math.min(SHARED, count - group)
      largest(address + 4 * group, grouped, packed.byteOffset + 4 * found)
      const most = packed[found]
      into[cellsFor(length) + (start + from + group) / SHARED] = most
      kernels.encode(address + 4 * group, grouped, most, codes.byteOffset + group, table)
    }
    const cells = cellsFor(count)
    codes.fill(0, count, cells * CODES_PER_FLOAT)
    const there = into.subarray((start + from) / CODES_PER_FLOAT).subarray(0, cells)
    kernels.join(codes.byteOffset, cells, (isInMemory(there) ? there : packed).byteOffset)
    if (!isInMemory(there)) there.set(packed.subarray(0, cells))
  }
}

/**
 * Unpacks the part of a vector of that length from `start`, a multiple of the length of a section, on.
 * @param into its numbers
 */
export function unpack(
  packed: Float32Array,
  encoding: Encoding,
  length: number,
  start: number,
  into: Float32Array
): void {
  const memory = kernelMemory()
  const { kernels, slots, packed: cellsInMemory } = memory
  const table = tableOf(encoding, memory)
  for (let from = 0; from < into.length; from += SECTION) {
    const section = into.subarray(from, from + SECTION)
    const count = section.length
    const address = (isInMemory(section) ? section : slots[0]).byteOffset
    const multiply = encoding === 'squares' ? kernels.multiplySquared : kernels.multiply
    const cells = cellsFor(count)
    const there = packed.subarray((start + from) / CODES_PER_FLOAT).subarray(0, cells)
    if (!isInMemory(there)) cellsInMemory.set(there)
    kernels.decode((isInMemory(there) ? there : cellsInMemory).byteOffset, cells, address, table)
    for (let group = 0; group < count; group += SHARED) {
      const scale = packed[cellsFor(length) + (start + from + group) / SHARED]
      multiply(address + 4 * group, Math.min(SHARED, count - group), scale)
    }
    readBack(section, 0)
  }
}

/** Addresses in the memories of kernels. */
const addresses = new WeakMap<KernelMemory, Partial<Record<Encoding, number>>>()

/** The address of a table, which is created at first use. */
function tableOf(encoding: Encoding, memory: KernelMemory): number {
  const known = addresses.get(memory) ?? {}
  addresses.set(memory, known)
  known[encoding] ??= createTable(numbers(encoding), memory.tables[encoding === 'signed' ? 0 : 1])
  return known[encoding]
}

function createTable(values: Float32Array, { buffer, byteOffset, byteLength }: Uint8Array): number {
  const table = new DataView(buffer, byteOffset, byteLength)
  const zero = values.indexOf(0)
  new Float32Array(buffer, byteOffset + NUMBERS_AT, values.length).set(values)
  const share = new Float32Array(1)
  const bits = new Uint32Array(share.buffer)
  for (let bucket = 0; bucket < 2 ** 16; bucket++) {
    const isNegative = bucket >= 2 ** 15
    // The lowest number of the bucket, which has the largest magnitude if it is negative.
    bits[0] = bucket * 2 ** 16 + (isNegative ? 2 ** 16 - 1 : 0)
    const { code, above } = candidates(values, share[0], zero, isNegative)
    const entry = ENTRIES_AT + ENTRY_BYTES * bucket
    table.setUint8(entry + NEAREST_AT, code)
    table.setFloat32(entry + ABOVE_AT, above, true)
  }
  return byteOffset
}

/** The code of a bucket's lowest number, and the number above which the next higher code is nearer. */
function candidates(values: Float32Array, lowest: number, zero: number, isNegative: boolean) {
  // The group has only zeros, so its scale is 0.
  if (Number.isNaN(lowest)) return { code: zero, above: 2 }
  const code = nearestTo(values, lowest)
  // The code of 0 is for 0 alone, which is in the first bucket of each sign.
  const isNextToZero = code === zero || (isNegative && code === zero - 1)
  if (!isNextToZero) return { code, above: code < 255 ? middle(values, code) : 2 }
  if (isNegative) return { code: zero - 1, above: -SMALLEST }
  return lowest === 0 ? { code: zero, above: 0 } : { code: zero + 1, above: middle(values, zero + 1) }
}

function nearestTo(values: Float32Array, value: number): number {
  let code = 0
  while (code < 255 && value > middle(values, code)) code++
  return code
}

/** Midpoint between the number of a code and the next one. */
function middle(values: Float32Array, code: number): number {
  return (values[code] + values[code + 1]) / 2
}

/** The 256 numbers. Each decade has twice as many as the one below, at the midpoints of equal parts. */
function numbers(encoding: Encoding): Float32Array {
  const magnitudes: number[] = []
  let most = 1
  for (let decade = DECADES - 1; decade >= 0; decade--) {
    const parts = (encoding === 'signed' ? 1 : 2) * 2 ** decade
    const least = most / 10
    for (let part = 0; part < parts; part++) magnitudes.push(least + ((most - least) * (part + 0.5)) / parts)
    most = least
  }
  // The rest of the 256 are the ends.
  const all = [0, 1, ...magnitudes, ...(encoding === 'signed' ? magnitudes.map(value => -value) : [])]
  return Float32Array.from(all).sort()
}
