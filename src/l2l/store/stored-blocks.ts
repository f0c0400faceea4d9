/** A layer file's arrays as blocks that are read when they are accessed. */
import type { Blocks } from '../../learner/index.js'
import type { LayerReader } from './layer-file.js'

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
