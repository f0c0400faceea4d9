/**
 * Small operations over blocks that several rooms need: making them for a layout, growing them, and the Euclidean
 * projection that every update rule offers.
 */
import type { Blocks, Layout, UpdateRule } from './types.js'

/** All-zero blocks of that layout. */
export function zeros(layout: Layout): Float32Array[] {
  return layout.blocks.map(block => new Float32Array(block.length))
}

/** Blocks of the new layout that begin with the old blocks' elements and go on with zeros. */
export function grown(blocks: Blocks, layout: Layout): Float32Array[] {
  return layout.blocks.map((block, k) => {
    const larger = new Float32Array(block.length)
    larger.set(blocks[k])
    return larger
  })
}

/**
 * Π_W in place for W = {w : ‖w‖ ≤ radius}, the norm taken over all blocks together; undefined leaves w alone.
 * Only + × ÷ and a square root, so a replay gives equal bits.
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
 * Which blocks of the rule's state for the whole layout belong to each block of parameters. Counters, which all blocks have
 * in common, are in every list.
 */
export function statePlaces(rule: UpdateRule, layout: Layout): readonly (readonly number[])[] {
  const whole = rule.stateLayout(layout).blocks.map(({ name }) => name)
  return layout.blocks.map(block => rule.stateLayout({ blocks: [block] }).blocks.map(({ name }) => whole.indexOf(name)))
}
