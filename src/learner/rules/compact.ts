/**
 * Rules whose state takes eight bits a number instead of 32, for models whose optimizer state would otherwise be larger than the
 * model. The option is part of the rule, because it changes the result: all peers must round alike.
 */
import { stateBlockIndices } from '../blocks.js'
import { OptionError } from '../errors.js'
import type { Layout } from '../types.js'
import type { DividingRule } from './definition.js'
import { PACK_STRIDE, pack, packedLength, unpack } from './eight-bit.js'

/** Encoding of a block of state. `squares` stores the root of mean squares, which halves their range. */
type Encoding = 'float32' | 'signed' | 'squares'

/** Means and velocities are signed, squares are not, and counters stay as they are. */
function encodingOf(stateBlock: string): Encoding {
  if (stateBlock.endsWith('.mean') || stateBlock.endsWith('.velocity')) return 'signed'
  return stateBlock.endsWith('.square') ? 'squares' : 'float32'
}

/** Numbers that an elementwise rule steps at once, so that they fit into the processor's cache. */
const SECTION = 4 * PACK_STRIDE

/** @param isElementwise whether the rule looks at each number alone, counters apart */
export function compact(rule: DividingRule, isElementwise: boolean): DividingRule {
  const stateOf = (length: number) => rule.stateLayout({ blocks: [{ name: '', length }] }).blocks
  return {
    name: rule.name,
    description: rule.description.replace(/\)$/, ',bits=8)'),
    stateLayout: layout => packedLayout(rule.stateLayout(layout)),
    step(previous, sum, count, updates, contributors, divisor) {
      const layout = { blocks: sum.map(({ length }, k) => ({ name: String(k), length })) }
      const stateIndices = stateBlockIndices(rule, layout)
      const state: Float32Array[] = previous.state.map(block => new Float32Array(block.length))
      const parameters = previous.parameters.map((block, k) => {
        const { length } = block
        const kinds = stateOf(length).map(({ name }) => encodingOf(name))
        const next = new Float32Array(length)
        const size = isElementwise ? SECTION : Math.max(1, length)
        for (let start = 0; start < length; start += size) {
          const end = Math.min(length, start + size)
          const stepped = rule.step(
            {
              parameters: [block.subarray(start, end)],
              state: kinds.map((encoding, i) =>
                unpacked(previous.state[stateIndices[k][i]], encoding, length, start, end)
              )
            },
            [sum[k].subarray(start, end)],
            count,
            updates,
            contributors,
            divisor
          )
          next.set(stepped.parameters[0], start)
          for (const [i, encoding] of kinds.entries()) {
            packInto(state[stateIndices[k][i]], stepped.state[i], encoding, length, start)
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

function packedLayout({ blocks }: Layout): Layout {
  return {
    blocks: blocks.map(({ name, length }) => ({
      name,
      length: encodingOf(name) === 'float32' ? length : packedLength(length)
    }))
  }
}

function packInto(into: Float32Array, values: Float32Array, encoding: Encoding, length: number, start: number): void {
  if (encoding === 'float32') into.set(values)
  else if (encoding === 'signed') pack(values, 'signed', into, length, start)
  else {
    for (let i = 0; i < values.length; i++) values[i] = Math.sqrt(values[i])
    pack(values, 'unsigned', into, length, start)
  }
}

function unpacked(block: Float32Array, encoding: Encoding, length: number, start: number, end: number): Float32Array {
  if (encoding === 'float32') return block
  if (encoding === 'signed') return unpack(block, 'signed', length, start, end)
  const values = unpack(block, 'unsigned', length, start, end)
  for (let i = 0; i < values.length; i++) values[i] *= values[i]
  return values
}
