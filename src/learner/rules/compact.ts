/**
 * A rule whose state takes eight bits a number instead of 32, for models whose optimizer would else be larger than they are.
 * It is part of the rule, as it changes what is computed: all peers round alike.
 */

import { statePlaces } from '../blocks.js'
import { OptionError } from '../errors.js'
import type { Layout, UpdateRule } from '../types.js'
import { PACK_STRIDE, pack, packedLength, unpack } from './eight-bit.js'

/** How a block of a rule's state is kept: as it is, or in eight bits. Of mean squares the root is kept, which halves their range. */
export type Keeping = 'plain' | 'signed' | 'squares'

/** Numbers that are stepped at once where a rule looks at each number alone: little enough for the processor's cache. */
const SECTION = 4 * PACK_STRIDE

/**
 * @param keepingOf by a state block's name
 * @param isElementwise whether the rule looks at each number alone, counters apart
 */
export function compact(rule: UpdateRule, keepingOf: (name: string) => Keeping, isElementwise: boolean): UpdateRule {
  const stateOf = (length: number) => rule.stateLayout({ blocks: [{ name: '', length }] }).blocks
  return {
    name: rule.name,
    description: rule.description.replace(/\)$/, ',bits=8)'),
    stateLayout: layout => packedLayout(rule.stateLayout(layout), keepingOf),
    step(previous, sum, count, updates) {
      const layout = { blocks: sum.map(({ length }, k) => ({ name: String(k), length })) }
      const places = statePlaces(rule, layout)
      const state: Float32Array[] = previous.state.map(block => new Float32Array(block.length))
      const parameters = previous.parameters.map((block, k) => {
        const { length } = block
        const kinds = stateOf(length).map(({ name }) => keepingOf(name))
        const next = new Float32Array(length)
        const size = isElementwise ? SECTION : Math.max(1, length)
        for (let start = 0; start < length; start += size) {
          const end = Math.min(length, start + size)
          const stepped = rule.step(
            {
              parameters: [block.subarray(start, end)],
              state: kinds.map((keeping, i) => unpacked(previous.state[places[k][i]], keeping, length, start, end))
            },
            [sum[k].subarray(start, end)],
            count,
            updates
          )
          next.set(stepped.parameters[0], start)
          for (const [i, keeping] of kinds.entries()) {
            packInto(state[places[k][i]], stepped.state[i], keeping, length, start)
          }
        }
        return next
      })
      return { parameters, state }
    }
  }
}

/** @throws OptionError unless the bits are 8, 32 or left out, and go with the other options */
export function isCompact(
  rule: string,
  { bits, radius }: { readonly bits?: number; readonly radius?: number }
): boolean {
  if (bits === undefined || bits === 32) return false
  if (bits !== 8) throw new OptionError(`rule ${rule}: bits must be 8 or 32, not ${bits}`)
  if (radius !== undefined) throw new OptionError(`rule ${rule}: bits=8 and a radius do not go together: leave one out`)
  return true
}

function packedLayout({ blocks }: Layout, keepingOf: (name: string) => Keeping): Layout {
  return {
    blocks: blocks.map(({ name, length }) => ({
      name,
      length: keepingOf(name) === 'plain' ? length : packedLength(length)
    }))
  }
}

function packInto(into: Float32Array, values: Float32Array, keeping: Keeping, length: number, start: number): void {
  if (keeping === 'plain') into.set(values)
  else if (keeping === 'signed') pack(values, 'signed', into, length, start)
  else {
    for (let i = 0; i < values.length; i++) values[i] = Math.sqrt(values[i])
    pack(values, 'unsigned', into, length, start)
  }
}

function unpacked(block: Float32Array, keeping: Keeping, length: number, start: number, end: number): Float32Array {
  if (keeping === 'plain') return block
  if (keeping === 'signed') return unpack(block, 'signed', length, start, end)
  const values = unpack(block, 'unsigned', length, start, end)
  for (let i = 0; i < values.length; i++) values[i] *= values[i]
  return values
}
