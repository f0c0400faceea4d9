/** Operations on blocks of parameters: creation, growth, and projection onto a Euclidean ball. */
import { newBlock } from '../base/memory.js'
import type { Blocks, Layout, UpdateRule } from './types.js'

/** Blocks of zeros with the given layout. */
export function zeros(layout: Layout): Float32Array[] {
  return layout.blocks.map(block => newBlock(block.length))
}

/** Blocks of a larger layout that start with the elements of the given blocks, followed by zeros. */
export function grown(blocks: Blocks, layout: Layout): Float32Array[] {
  return layout.blocks.map((block, k) => {
    const larger = newBlock(block.length)
    larger.set(blocks[k])
    return larger
  })
}

/**
 * Π_W in place for W = {w : ‖w‖ ≤ radius}, with the norm over all blocks together. Without a radius, does nothing.
 * Uses only + × ÷ and a square root, so a replay gives equal bits.
 */
export function projectOntoBall(blocks: Blocks, radius: number | undefined): void {
  if (radius === undefined) return
  let square = 0
  for (const block of blocks) for (let i = 0; i < block.length; i++) square += block[i] * block[i]
  if (square <= radius * radius) return
  const scale = radius / Math.sqrt(square)
  for (const block of blocks) for (let i = 0; i < block.length; i++) block[i] *= scale
}

/**
 * For each block of parameters, the indices of its blocks in the rule's state for the whole layout. Counters, which all blocks
 * share, are in every list.
 */
export function stateBlockIndices(rule: UpdateRule, layout: Layout): readonly (readonly number[])[] {
  const whole = rule.stateLayout(layout).blocks.map(({ name }) => name)
  return layout.blocks.map(block => rule.stateLayout({ blocks: [block] }).blocks.map(({ name }) => whole.indexOf(name)))
}
