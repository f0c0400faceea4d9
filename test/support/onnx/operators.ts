/** The operators of ONNX's opset 17 that the export uses. */
import type { AttributeProto } from '../../../src/nn/onnx/graph.js'
import { alongAxis, at, broadcast, build, sizeOf, type Value } from './values.js'

type Attributes = Readonly<Record<string, number | readonly number[]>>
type Operator = (inputs: readonly Value[], attributes: Attributes) => readonly Value[]

export function attributesOf(attributes: readonly AttributeProto[]): Attributes {
  return Object.fromEntries(attributes.map(({ name, type, f, i, ints }) => [name, (type === 7 ? ints : (f ?? i)) ?? 0]))
}

const unary =
  (f: (x: number) => number): Operator =>
  ([x]) => [{ shape: x.shape, data: x.data.map(f) }]
const elementwise =
  (f: (...numbers: number[]) => number): Operator =>
  inputs => [broadcast(inputs, f)]
const reduction =
  (f: (numbers: number[]) => number): Operator =>
  ([x, given], { axes, keepdims }) => {
    const [axis] = given?.data ?? (axes as readonly number[])
    const reduced = alongAxis(x, axis, 1, numbers => [f(numbers)])
    return [keepdims === 1 ? reduced : { ...reduced, shape: reduced.shape.filter((_, k) => k !== axis) }]
  }
const sum = (numbers: readonly number[]) => numbers.reduce((total, x) => total + x, 0)
const mean = (numbers: readonly number[]) => sum(numbers) / numbers.length

export const OPERATORS: Readonly<Record<string, Operator>> = {
  Identity: inputs => inputs,
  // The numbers of all types are the same here, but for integers.
  Cast: ([x]) => [x],
  Neg: unary(x => -x),
  Abs: unary(Math.abs),
  Sqrt: unary(Math.sqrt),
  Reciprocal: unary(x => 1 / x),
  Relu: unary(x => Math.max(0, x)),
  Tanh: unary(Math.tanh),
  Sigmoid: unary(x => 1 / (1 + Math.exp(-x))),
  Erf: unary(erf),
  Not: unary(x => 1 - x),
  IsNaN: unary(x => Number(Number.isNaN(x))),
  Add: elementwise((x, y) => x + y),
  Sub: elementwise((x, y) => x - y),
  Mul: elementwise((x, y) => x * y),
  Div: elementwise((x, y) => x / y),
  Max: elementwise(Math.max),
  Min: elementwise(Math.min),
  Equal: elementwise((x, y) => Number(x === y)),
  Less: elementwise((x, y) => Number(x < y)),
  Greater: elementwise((x, y) => Number(x > y)),
  GreaterOrEqual: elementwise((x, y) => Number(x >= y)),
  Where: elementwise((condition, x, y) => (condition === 1 ? x : y)),
  MatMul: ([x, y]) => {
    const inner = x.shape[x.shape.length - 1]
    if (y.shape[y.shape.length - 2] !== inner) throw new Error(`[${x.shape}] · [${y.shape}]`)
    const shape = [...x.shape.slice(0, -1), y.shape[y.shape.length - 1]]
    return [
      build(shape, indices => {
        const [row, column] = indices.slice(-2)
        const outer = indices.slice(0, -2)
        let total = 0
        for (let k = 0; k < inner; k++) total += at(x, [...outer, row, k]) * at(y, [...outer, k, column])
        return total
      })
    ]
  },
  ReduceMean: reduction(mean),
  ReduceSum: reduction(sum),
  ReduceMax: reduction(numbers => Math.max(...numbers)),
  ArgMax: ([x], { axis }) =>
    reduction(numbers => numbers.indexOf(Math.max(...numbers)))([x], { axes: [axis as number], keepdims: 0 }),
  CumSum: ([x, axis]) => [
    alongAxis(x, axis.data[0], x.shape[axis.data[0]], numbers => numbers.map((_, k) => sum(numbers.slice(0, k))))
  ],
  Softmax: ([x]) => [
    alongAxis(x, -1, x.shape[x.shape.length - 1], numbers => {
      const top = Math.max(...numbers)
      const powers = numbers.map(number => Math.exp(number - top))
      return powers.map(power => power / sum(powers))
    })
  ],
  LayerNormalization: ([x, scale, offset], { epsilon }) => [
    alongAxis(x, -1, scale.data.length, numbers => {
      const centre = mean(numbers)
      const variance = mean(numbers.map(number => (number - centre) ** 2))
      return numbers.map(
        (number, k) => ((number - centre) / Math.sqrt(variance + (epsilon as number))) * scale.data[k] + offset.data[k]
      )
    })
  ],
  Reshape: ([x, { data: sizes }]) => {
    const kept = sizes.map((size, axis) => (size === 0 ? x.shape[axis] : size))
    const known = kept.filter(size => size >= 0)
    const shape = kept.map(size => (size < 0 ? x.data.length / sizeOf(known) : size))
    if (sizeOf(shape) !== x.data.length) throw new Error(`[${x.shape}] is not of the size of [${shape}]`)
    return [{ shape, data: x.data }]
  },
  Unsqueeze: ([x, { data }]) => [{ shape: x.shape.toSpliced(data[0], 0, 1), data: x.data }],
  Transpose: ([x], { perm }) => {
    const order = perm as readonly number[]
    return [
      build(
        order.map(axis => x.shape[axis]),
        indices =>
          at(
            x,
            Array.from(order, (_, axis) => indices[order.indexOf(axis)])
          )
      )
    ]
  },
  Split: ([x, { data: sizes }], { axis }) => {
    const position = axis as number
    return sizes.map((size, k) => {
      const first = sum(sizes.slice(0, k))
      return build(x.shape.with(position, size), indices => at(x, indices.with(position, indices[position] + first)))
    })
  },
  Concat: (inputs, { axis }) => {
    const position = axis as number
    const sizes = inputs.map(({ shape }) => shape[position])
    return [
      build(inputs[0].shape.with(position, sum(sizes)), indices => {
        let index = indices[position]
        const k = sizes.findIndex(size => {
          if (index < size) return true
          index -= size
          return false
        })
        return at(inputs[k], indices.with(position, index))
      })
    ]
  },
  Gather: ([x, indices], { axis = 0 }) => {
    const position = axis as number
    const rank = indices.shape.length
    const shape = x.shape.toSpliced(position, 1, ...indices.shape)
    return [
      build(shape, where => {
        const index = at(indices, where.slice(position, position + rank))
        return at(x, where.toSpliced(position, rank, index))
      })
    ]
  },
  Pad: ([
    x,
    { data: pads },
    {
      data: [filler]
    }
  ]) => {
    const rank = x.shape.length
    const shape = x.shape.map((size, axis) => size + pads[axis] + pads[axis + rank])
    return [
      build(shape, indices => {
        const inside = indices.map((index, axis) => index - pads[axis])
        return inside.every((index, axis) => index >= 0 && index < x.shape[axis]) ? at(x, inside) : filler
      })
    ]
  },
  Conv: ([x, kernel, bias], { strides, pads }) => {
    const [step] = strides as readonly number[]
    const [top, left, bottom, right] = pads as readonly number[]
    const [filters, channels, size] = kernel.shape
    const [samples, , height, width] = x.shape
    const extent = (length: number, zeros: number) => Math.floor((length + zeros - size) / step) + 1
    const shape = [samples, filters, extent(height, top + bottom), extent(width, left + right)]
    return [
      build(shape, ([n, f, row, column]) => {
        let total = bias.data[f]
        for (let c = 0; c < channels; c++) {
          for (let i = 0; i < size; i++) {
            for (let j = 0; j < size; j++) {
              const [y, z] = [row * step + i - top, column * step + j - left]
              if (y >= 0 && y < height && z >= 0 && z < width) total += at(x, [n, c, y, z]) * at(kernel, [f, c, i, j])
            }
          }
        }
        return total
      })
    ]
  },
  MaxPool: ([x], { kernel_shape }) => {
    const [size] = kernel_shape as readonly number[]
    const [samples, channels, height, width] = x.shape
    return [
      build([samples, channels, Math.floor(height / size), Math.floor(width / size)], ([n, c, row, column]) => {
        const cells = Array.from({ length: size * size }, (_, k) =>
          at(x, [n, c, row * size + Math.floor(k / size), column * size + (k % size)])
        )
        return Math.max(...cells)
      })
    ]
  }
}

/** The error function by its Taylor series, which is exact to double precision up to about 3, and 1 beyond 6. */
function erf(x: number): number {
  if (Math.abs(x) > 5) return Math.sign(x)
  let [term, total] = [x, x]
  for (let n = 1; n < 120; n++) {
    term *= (-x * x) / n
    total += term / (2 * n + 1)
  }
  return (2 / Math.sqrt(Math.PI)) * total
}
