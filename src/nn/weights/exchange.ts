/** Converts a model's blocks to named tensors and back. */
import { layersWithBlocks } from '../blocks.js'
import { formatShape, sameShape, sizeOf } from '../shape.js'
import type { Model, WeightSpec } from '../types.js'
import { ModelError } from '../types.js'
import { type LayoutName, locateWeight, prefixesOf, type TensorLocation } from './layouts.js'
import type { NamedTensor, TensorFile } from './safetensors.js'

/** @throws ModelError if the layout has no name for one of the model's weights */
export function exportBlocks(model: Model, blocks: readonly Float32Array[], layout: LayoutName): NamedTensor[] {
  const tensors: NamedTensor[] = []
  forEachWeight(model, blocks, layout, (location, { shape }, numbers) => {
    const columns = shape[shape.length - 1] / location.names.length
    const tensorShape = [...shape.slice(0, -1), columns]
    location.names.forEach((name, i) => {
      const part = sliceColumns(numbers, shape, i * columns, columns)
      tensors.push(
        location.isTransposed
          ? { name, shape: [...tensorShape].reverse(), numbers: transpose(part, tensorShape) }
          : { name, shape: tensorShape, numbers: part }
      )
    })
    if (location.firstRowOf !== undefined) {
      // Rows for the first and the second text of a pair. Here they are part of the position embeddings.
      tensors.push({ name: location.firstRowOf, shape: [2, shape[1]], numbers: new Float32Array(2 * shape[1]) })
    }
  })
  return tensors
}

/**
 * @param initial initial blocks, not modified; used for weights that the file may lack
 * @throws ModelError naming the tensor that is missing or has another shape
 */
export function importBlocks(
  model: Model,
  file: TensorFile,
  layout: LayoutName,
  initial: readonly Float32Array[]
): Float32Array[] {
  const blocks = initial.map(block => block.slice())
  const prefix = prefixesOf(layout).find(start => [...file.keys()].some(name => name.startsWith(start))) ?? ''
  const stored = (name: string) => file.get(prefix + name) ?? file.get(name)
  forEachWeight(model, blocks, layout, (location, weight, numbers) => {
    const exists = (list: readonly string[]) => list.every(name => stored(name) !== undefined)
    const names = [location.names, location.alternatives ?? []].find(list => list.length > 0 && exists(list))
    if (names !== undefined) {
      const columns = weight.shape[weight.shape.length - 1] / names.length
      const tensorShape = [...weight.shape.slice(0, -1), columns]
      names.forEach((name, i) => {
        putColumns(numbers, weight.shape, i * columns, readTensor(name, tensorShape, location))
      })
      if (location.firstRowOf !== undefined) addToRows(numbers, stored(location.firstRowOf)?.read(), weight.shape[1])
    } else if (location.ifMissing === 'zeros') {
      numbers.fill(0)
    } else if (location.ifMissing === undefined) {
      const missing = location.names.find(name => stored(name) === undefined)
      throw new ModelError(
        `the file has no tensor ${missing} (${formatShape(weight.shape)}); check that it belongs to this model`
      )
    }
  })
  return blocks

  /** Reads a tensor of the file in the model's layout. */
  function readTensor(name: string, shape: readonly number[], location: TensorLocation): Float32Array {
    const tensor = stored(name)
    if (tensor === undefined) throw new ModelError(`the file has no tensor ${name}`)
    const isMatrix = location.isTransposed && shape.length === 2
    const expected = isMatrix ? [...shape].reverse() : shape
    const comparable = location.mayHaveMoreRows
      ? [Math.min(shape[0], tensor.shape[0]), ...tensor.shape.slice(1)]
      : tensor.shape
    if (!sameShape(comparable, expected)) {
      const least = location.mayHaveMoreRows ? 'at least ' : ''
      throw new ModelError(
        `tensor ${name} has shape ${formatShape(tensor.shape)}, expected ${least}${formatShape(expected)}`
      )
    }
    const numbers = tensor.read()
    return isMatrix ? transpose(numbers, expected) : numbers.subarray(0, sizeOf(shape))
  }
}

function forEachWeight(
  model: Model,
  blocks: readonly Float32Array[],
  layout: LayoutName,
  visit: (location: TensorLocation, weight: WeightSpec, numbers: Float32Array) => void
): void {
  layersWithBlocks(model).forEach((layer, i) => {
    let at = 0
    for (const weight of layer.weights) {
      const location = locateWeight(layout, layer.name, weight.name)
      if (location === undefined) {
        throw new ModelError(`layout ${layout} has no name for ${layer.name}.${weight.name}; use layout admb`)
      }
      visit(location, weight, blocks[i].subarray(at, at + sizeOf(weight.shape)))
      at += sizeOf(weight.shape)
    }
  })
}

/** @param shape [rows, columns] @returns [columns, rows] */
function transpose(numbers: Float32Array, [rows, columns]: readonly number[]): Float32Array {
  if (columns === undefined) return numbers
  const result = new Float32Array(numbers.length)
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) result[c * rows + r] = numbers[r * columns + c]
  return result
}

function sliceColumns(numbers: Float32Array, shape: readonly number[], from: number, count: number): Float32Array {
  const width = shape[shape.length - 1]
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

function addToRows(into: Float32Array, row: Float32Array | undefined, width: number): void {
  if (row === undefined) return
  for (let i = 0; i < into.length; i++) into[i] += row[i % width]
}
