/** Adds adapters to the frozen weights that they belong to, on the host. */
import { sizeOf, totalSize } from './shape.js'
import type { Layer, Model } from './types.js'

/**
 * Blocks of the whole network, of which only some weights are trained.
 * @param blocks of the trained weights
 * @param frozen by layer
 */
export function mergedBlocks(
  { layers }: Model,
  blocks: readonly Float32Array[],
  frozen: readonly (Float32Array | undefined)[]
): Float32Array[] {
  let next = 0
  return layers.flatMap((layer, l) => {
    const own = layer.weights.length > 0 ? blocks[next++] : undefined
    const base = frozen[l]
    if (base === undefined) return own === undefined ? [] : [own]
    return [own === undefined ? base : withAdapters(layer, own, base)]
  })
}

/** W + scale·A·B for each adapter of the layer. */
function withAdapters(
  { weights, frozen = [], adapters = [] }: Layer,
  own: Float32Array,
  base: Float32Array
): Float32Array {
  const merged = Float32Array.from(base)
  let at = 0
  for (const [i, { weight, parts, rank, scale }] of adapters.entries()) {
    const [inputs, outputs] = frozen[weight].shape
    const from = totalSize(frozen.slice(0, weight))
    const b = at + sizeOf(weights[2 * i].shape)
    const width = outputs / parts
    for (let row = 0; row < inputs; row++) {
      const into = merged.subarray(from + row * outputs, from + (row + 1) * outputs)
      for (let k = 0; k < parts * rank; k++) {
        const factor = scale * own[at + row * parts * rank + k]
        const first = Math.floor(k / rank) * width
        const line = b + (k % rank) * outputs
        for (let column = first; column < first + width; column++) into[column] += factor * own[line + column]
      }
    }
    at = b + sizeOf(weights[2 * i + 1].shape)
  }
  return merged
}
