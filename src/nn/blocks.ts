/** A model's parameters as blocks: one a layer, layers without weights having none. */
import type { Layout } from '../learner/index.js'
import { forkSeed, uniforms } from './random.js'
import { totalSize } from './shape.js'
import type { Layer, Model } from './types.js'

/** The layers that have a block, in the blocks' order. */
export function layersWithBlocks({ layers }: Model): readonly Layer[] {
  return layers.filter(({ weights }) => weights.length > 0)
}

export function layoutOf(model: Model): Layout {
  return { blocks: layersWithBlocks(model).map(({ name, weights }) => ({ name, length: totalSize(weights) })) }
}

/** Fresh weights: the same for the same seed on every machine. */
export function initialBlocks(model: Model, seed: number): Float32Array[] {
  return [...eachInitialBlock(model, seed)]
}

/** The same one after the other, for models of which two copies would not fit. */
export function* eachInitialBlock(model: Model, seed: number): Generator<Float32Array> {
  for (const [index, layer] of layersWithBlocks(model).entries())
    yield layer.initialWeights(uniforms(forkSeed(seed, index)))
}
