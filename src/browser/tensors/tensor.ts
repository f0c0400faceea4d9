/** Tensors: numbers in row-major order, and a shape. */

export type DataType = 'float32' | 'int32'
type Values = Float32Array | Int32Array
export type Shape = readonly number[]

export class Tensor {
  /** @param values row by row; the tensor does not copy them */
  constructor(
    readonly values: Values,
    readonly shape: Shape,
    readonly dtype: DataType
  ) {}

  get size(): number {
    return this.values.length
  }

  get rank(): number {
    return this.shape.length
  }

  /** The numbers themselves, not a copy. */
  dataSync(): Values {
    return this.values
  }

  /** The garbage collector frees tensors. */
  dispose(): void {}
}

/** Number of elements of a shape. */
export function sizeOf(shape: Shape): number {
  return shape.reduce((product, length) => product * length, 1)
}

/** Distances between neighbours along each axis. */
export function stridesOf(shape: Shape): number[] {
  const strides = new Array<number>(shape.length)
  let stride = 1
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride
    stride *= shape[axis]
  }
  return strides
}

/** Zeros of a type. */
export function allocate(dtype: DataType, size: number): Values {
  return dtype === 'int32' ? new Int32Array(size) : new Float32Array(size)
}

/** @param dtype @default that of the values */
export function tensor(values: Values, shape: Shape = [values.length], dtype = typeOf(values)): Tensor {
  const isOfType = dtype === typeOf(values)
  const converted = isOfType ? values : dtype === 'int32' ? Int32Array.from(values) : Float32Array.from(values)
  if (sizeOf(shape) !== values.length) throw new RangeError(`${values.length} numbers do not have the shape [${shape}]`)
  return new Tensor(converted, shape, dtype)
}

export { tensor as tensor2d, tensor as tensor3d }

function typeOf(values: Values): DataType {
  return values instanceof Int32Array ? 'int32' : 'float32'
}

export function fill(shape: Shape, value: number, dtype: DataType = 'float32'): Tensor {
  return new Tensor(allocate(dtype, sizeOf(shape)).fill(value), shape, dtype)
}

export const ones = (shape: Shape, dtype?: DataType): Tensor => fill(shape, 1, dtype)
export const zeros = (shape: Shape, dtype?: DataType): Tensor => fill(shape, 0, dtype)

/** The same numbers in another shape. @param shape one length may be -1: what remains */
export function reshape(x: Tensor, shape: Shape): Tensor {
  const rest = -sizeOf(shape)
  return tensor(x.values, rest > 0 ? shape.map(length => (length < 0 ? x.size / rest : length)) : shape, x.dtype)
}

/** Towards zero for integers. */
export function cast(x: Tensor, dtype: DataType): Tensor {
  return tensor(x.values, x.shape, dtype)
}

export const clone = (x: Tensor): Tensor => x
export const keep = (x: Tensor): Tensor => x
export const dispose = (_tensors: unknown): void => {}
export const tidy = <T>(compute: () => T): T => compute()
