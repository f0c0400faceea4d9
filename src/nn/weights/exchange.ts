/** Converts a model's blocks to named tensors and back, one block at a time. */
import { layersWithBlocks } from '../blocks.js'
import { forkSeed, uniforms } from '../random.js'
import {
  formatShape,
  type Layer,
  type Model,
  ModelError,
  sameShape,
  sizeOf,
  totalSize,
  type WeightSpec,
  WeightsError
} from '../types.js'
import { type LayoutName, locateWeight, PREFIXES, type TensorLocation } from './layouts.js'
import type { NamedTensor, StoredTensor, TensorFile } from './safetensors.js'

/**
 * @param blocks each of which is accessed when its tensors are read, so that they need not be in memory together
 * @returns tensors that read their numbers from the blocks
 * @throws ModelError if the layout has no name for one of the model's weights
 */
export function exportBlocks(model: Model, blocks: readonly Float32Array[], layout: LayoutName): NamedTensor[] {
  let last: { readonly index: number; readonly block: Float32Array } | undefined
  const blockAt = (index: number) => {
    if (last?.index !== index) last = { index, block: blocks[index] }
    return last.block
  }
  return layersWithBlocks(model).flatMap((layer, i) =>
    rangesOf(layer, layout).flatMap(({ location, weight: { shape }, from, to }) => {
      const columns = shape[shape.length - 1] / location.names.length
      const partShape = [...shape.slice(0, -1), columns]
      return location.names.map((name, k) => {
        const part = () => sliceColumns(blockAt(i).subarray(from, to), shape, k * columns, columns)
        return location.isTransposed
          ? { name, shape: [...partShape].reverse(), read: () => transpose(part(), partShape) }
          : { name, shape: partShape, read: part }
      })
    })
  )
}

export interface ImportOptions {
  readonly layout: LayoutName
  /** Seed of the initial weights, which the file may lack. */
  readonly seed: number
  /** The indices of the blocks that are read. @default all */
  readonly wants?: (block: number) => boolean
}

/**
 * Reads the blocks of a model, one at a time.
 * @throws ModelError naming the tensor that is missing or has another shape; WeightsError
 */
export function* importBlocks(
  model: Model,
  file: TensorFile,
  { layout, seed, wants = () => true }: ImportOptions
): Generator<Float32Array> {
  for (const [index, layer] of layersWithBlocks(model).entries()) {
    if (!wants(index)) continue
    // Random weights take longer than those of the file.
    const isWhole = layer.weights.every(
      ({ name }) => namesIn(file, layout, locate(layout, layer.name, name)) !== undefined
    )
    const block = isWhole
      ? new Float32Array(totalSize(layer.weights))
      : layer.initialWeights(uniforms(forkSeed(seed, index)))
    for (const { location, weight, numbers } of weightsOf(layer, layout, block)) {
      const names = namesIn(file, layout, location)
      if (names !== undefined) {
        const columns = weight.shape[weight.shape.length - 1] / names.length
        const partShape = [...weight.shape.slice(0, -1), columns]
        for (const [k, name] of names.entries()) {
          const part = readTensor(name, file.get(name) as StoredTensor, partShape, location)
          putColumns(numbers, weight.shape, k * columns, part)
        }
      } else if (!location.isOptional) {
        const [missing] = location.names
        throw new ModelError(
          `the file has no tensor ${missing} (${formatShape(weight.shape)}); check that it belongs to this model`
        )
      }
    }
    yield block
  }
}

/** What a file lacks of the model's weights, and what it has besides them. */
export interface Coverage {
  /** Weights that keep their initial values. */
  readonly missing: readonly string[]
  /** Names of the layers of which it has no weight. */
  readonly missingLayers: readonly string[]
  /** Tensors that the model does not need. */
  readonly unneeded: readonly string[]
}

export function coverageOf(model: Model, file: TensorFile, layout: LayoutName): Coverage {
  const used = new Set<string>()
  const missing: string[] = []
  const missingLayers: string[] = []
  for (const layer of layersWithBlocks(model)) {
    let found = 0
    for (const { name } of layer.weights) {
      const location = locate(layout, layer.name, name)
      const names = namesIn(file, layout, location)
      if (names === undefined) missing.push(...location.names)
      else found++
      for (const name of names ?? []) used.add(name)
    }
    if (found === 0) missingLayers.push(layer.name)
  }
  return { missing, missingLayers, unneeded: [...file.keys()].filter(name => !used.has(name)) }
}

/** The tensors of the file that hold the weight; undefined if it lacks one. */
function namesIn(file: TensorFile, layout: LayoutName, location: TensorLocation): readonly string[] | undefined {
  const prefix = PREFIXES[layout]
  const { names, alternatives } = location
  const lists = [names, ...(alternatives === undefined ? [] : [alternatives])]
  const withoutPrefix = (list: readonly string[]) =>
    list.map(name => (name.startsWith(prefix) ? name.slice(prefix.length) : name))
  return [...lists, ...lists.map(withoutPrefix)].find(list => list.every(name => file.has(name)))
}

/** Reads a tensor of the file in the model's layout. */
function readTensor(
  name: string,
  tensor: StoredTensor,
  shape: readonly number[],
  { isTransposed = false }: TensorLocation
): Float32Array {
  const isMatrix = isTransposed && shape.length === 2
  const expected = isMatrix ? [...shape].reverse() : shape
  if (!sameShape(tensor.shape, expected)) {
    throw new ModelError(`tensor ${name} has shape ${formatShape(tensor.shape)}, expected ${formatShape(expected)}`)
  }
  const numbers = tensor.read()
  requireFinite(numbers, `tensor ${name}`)
  return isMatrix ? transpose(numbers, expected) : numbers
}

/** @throws WeightsError naming what holds weights that are not finite, which no prediction can use */
export function requireFinite(numbers: Float32Array, what: string): void {
  // The product is NaN for NaN and infinities only.
  let sum = 0
  for (let i = 0; i < numbers.length; i++) sum += 0 * numbers[i]
  if (sum === 0) return
  const count = numbers.reduce((total, number) => total + Number(!Number.isFinite(number)), 0)
  throw new WeightsError(
    `${what} has ${count} weights that are not finite, of ${numbers.length}: give weights of a model that has not diverged`
  )
}

interface LocatedWeight {
  readonly location: TensorLocation
  readonly weight: WeightSpec
  /** The weight's part of the block. */
  readonly numbers: Float32Array
}

/** The weights of a layer, with their parts of its block. */
function weightsOf(layer: Layer, layout: LayoutName, block: Float32Array): LocatedWeight[] {
  return rangesOf(layer, layout).map(({ from, to, ...weight }) => ({ ...weight, numbers: block.subarray(from, to) }))
}

/** The weights of a layer, with the ranges of their numbers in its block. */
function rangesOf(
  layer: Layer,
  layout: LayoutName
): (Omit<LocatedWeight, 'numbers'> & { readonly from: number; readonly to: number })[] {
  let at = 0
  return layer.weights.map(weight => {
    const from = at
    at += sizeOf(weight.shape)
    return { location: locate(layout, layer.name, weight.name), weight, from, to: at }
  })
}

function locate(layout: LayoutName, layer: string, weight: string): TensorLocation {
  const location = locateWeight(layout, layer, weight)
  if (location !== undefined) return location
  throw new ModelError(`layout ${layout} has no name for ${layer}.${weight}; use layout admb`)
}

/** Side of the squares that are transposed at a time, so that rows and columns stay in the cache. */
const TILE = 32

/** @param shape [rows, columns] @returns [columns, rows] */
function transpose(numbers: Float32Array, [rows, columns]: readonly number[]): Float32Array {
  if (columns === undefined) return numbers
  const result = new Float32Array(numbers.length)
  for (let top = 0; top < rows; top += TILE) {
    const bottom = Math.min(rows, top + TILE)
    for (let left = 0; left < columns; left += TILE) {
      const right = Math.min(columns, left + TILE)
      for (let r = top; r < bottom; r++) {
        for (let c = left; c < right; c++) result[c * rows + r] = numbers[r * columns + c]
      }
    }
  }
  return result
}

function sliceColumns(numbers: Float32Array, shape: readonly number[], from: number, count: number): Float32Array {
  const width = shape[shape.length - 1]
  if (count === width) return numbers
  const part = new Float32Array((numbers.length / width) * count)
  for (let row = 0; row * width < numbers.length; row++) {
    part.set(numbers.subarray(row * width + from, row * width + from + count), row * count)
  }
  return part
}

function putColumns(into: Float32Array, shape: readonly number[], from: number, part: Float32Array): void {
  const width = shape[shape.length - 1]
  const rows = into.length / width
  const count = part.length / rows
  for (let row = 0; row < rows; row++) into.set(part.subarray(row * count, (row + 1) * count), row * width + from)
}
