/**
 * Plain arithmetic on parameter blocks, in float32, one place for the loops that every sum goes through.
 */
import { isFiniteBlock } from '../base/floats.js'
import type { Blocks, Layout } from '../learner/types.js'

/** Zero blocks of a layout. */
export function zeros(layout: Layout): Float32Array[] {
  return layout.blocks.map(block => new Float32Array(block.length))
}

/** sum += addend, element by element, rounded to float32. */
export function addInto(sum: Blocks, addend: Blocks): void {
  for (let b = 0; b < sum.length; b++) {
    const s = sum[b]
    const a = addend[b]
    for (let i = 0; i < s.length; i++) s[i] += a[i]
  }
}

export function copyOf(blocks: Blocks): Float32Array[] {
  return blocks.map(block => block.slice())
}

export function clear(blocks: Blocks): void {
  for (const block of blocks) block.fill(0)
}

export function isFinite32(blocks: Blocks): boolean {
  return blocks.every(isFiniteBlock)
}

/** Total bytes of a layout's blocks. */
export function byteLength(layout: Layout): number {
  let length = 0
  for (const block of layout.blocks) length += block.length
  return length * 4
}
