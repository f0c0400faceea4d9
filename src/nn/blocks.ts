/**
 * A model's parameters as blocks, one per layer with weights, and the memory and compute cost of each layer. Adapters are added to their
 * frozen weights on the host.
 */
import type { Blocks, Layout } from '../learning/index.js'
import { forkSeed, uniforms } from './random.js'
import { FLOAT_BYTES, type Layer, type Model, sizeOf, totalSize } from './types.js'

/** Layers with weights, in block order. */
export function layersWithBlocks({ layers }: Model): readonly Layer[] {
  return layers.filter(({ weights }) => weights.length > 0)
}

/** The block index of each layer; undefined for layers without weights. */
export function blockIndices({ layers }: Model): readonly (number | undefined)[] {
  let next = 0
  return layers.map(layer => (layer.weights.length > 0 ? next++ : undefined))
}

export function layoutOf(model: Model): Layout {
  return {
    blocks: layersWithBlocks(model).map(({ name, kind, weights }) => ({
      name,
      kind,
      length: totalSize(weights),
      vectors: vectorsOf(weights)
    }))
  }
}

/** The shape of each tensor of each block. */
export function shapesOf(model: Model): (readonly number[])[][] {
  return layersWithBlocks(model).map(({ weights }) => weights.map(({ shape }) => shape))
}

/** Ranges of the weights of one axis: biases, and scales and offsets of norms. */
function vectorsOf(weights: Layer['weights']): [from: number, to: number][] {
  const ranges: [number, number][] = []
  let from = 0
  for (const { shape } of weights) {
    const to = from + sizeOf(shape)
    const last = ranges.at(-1)
    if (shape.length === 1 && last?.[1] === from) last[1] = to
    else if (shape.length === 1) ranges.push([from, to])
    from = to
  }
  return ranges
}

/** Blocks that are read each time they are accessed, so that they need not be in memory together. */
export function lazyBlocks(count: number, read: (block: number) => Float32Array): Blocks {
  const blocks: Float32Array[] = []
  for (let k = 0; k < count; k++) Object.defineProperty(blocks, k, { get: () => read(k), enumerable: true })
  return blocks
}

/** Initial weights. The same seed gives the same bits on every machine. */
export function initialBlocks(model: Model, seed: number): Float32Array[] {
  return [...eachInitialBlock(model, seed)]
}

/**
 * Initial weights, one block at a time, for models too large to hold twice.
 * @param wants the indices of the blocks @default all
 */
export function* eachInitialBlock(
  model: Model,
  seed: number,
  wants: (block: number) => boolean = () => true
): Generator<Float32Array> {
  for (const [index, layer] of layersWithBlocks(model).entries()) {
    if (wants(index)) yield layer.initialWeights(uniforms(forkSeed(seed, index)))
  }
}

/** Memory and compute cost of one layer: the planner's input. */
interface LayerCosts {
  readonly name: string
  readonly kind: string
  /** Number of parameters that are trained. */
  readonly parameters: number
  /** Bytes of the gradients of all trained weights that it uses, shared ones included. */
  readonly gradientBytes: number
  /** Bytes of all weights that it uses, shared ones included. */
  readonly weightBytes: number
  /** A: output bytes per sample. */
  readonly outputBytes: number
  /** X: bytes per sample that `forwardSaving` saves besides input and output. */
  readonly activationBytes: number
  /** Multiply-accumulates per sample of the forward pass. */
  readonly macs: number
}

export function layerCosts({ layers }: Model): LayerCosts[] {
  return layers.map(({ name, kind, weights, frozen = [], shares = [], output, activations, macs }) => {
    const parameters = totalSize(weights)
    const trainedShares = shares.filter(({ isFrozen }) => !isFrozen)
    return {
      name,
      kind,
      parameters,
      gradientBytes: (parameters + totalSize(trainedShares)) * FLOAT_BYTES,
      weightBytes: (parameters + totalSize(frozen) + totalSize(shares)) * FLOAT_BYTES,
      outputBytes: sizeOf(output) * FLOAT_BYTES,
      activationBytes: totalSize(activations.map(shape => ({ shape }))) * FLOAT_BYTES,
      macs
    }
  })
}

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
