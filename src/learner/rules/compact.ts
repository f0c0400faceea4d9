/**
 * Rules whose state takes eight bits a number instead of 32, for models whose optimizer state would otherwise be larger than the
 * model. The option is part of the rule, because it changes the result: all peers must round alike.
 */
import { newBlock } from '../../base/memory.js'
import { stateBlockIndices } from '../blocks.js'
import { OptionError } from '../errors.js'
import type { Blocks, Layout } from '../types.js'
import { type DividingRule, withPureStep } from './definition.js'
import { type Encoding, pack, packedLength, unpack } from './eight-bit.js'
import { FIRST_STATE_SLOT, kernelMemory, SECTION } from './kernels/memory.js'

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
      const state: Float32Array[] = previous.state.map(block => newBlock(block.length))
      const parameters = previous.parameters.map((block, k) => {
        const { length } = block
        const unpacked = indices[k].map(i => {
          const encoding = encodings[i]
          if (encoding === undefined) return previous.state[i]
          const values = newBlock(length)
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
