/** Tensors as plain arrays, in row-major order. */
export interface Value {
  readonly shape: readonly number[]
  /** Truth values are 0 and 1. */
  readonly data: readonly number[]
}

export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

/** @param valueAt by the indices of an element */
export function build(shape: readonly number[], valueAt: (at: number[]) => number): Value {
  const at = shape.map(() => 0)
  const data = Array.from({ length: sizeOf(shape) }, (_, i) => {
    let rest = i
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      at[axis] = rest % shape[axis]
      rest = Math.floor(rest / shape[axis])
    }
    return valueAt(at)
  })
  return { shape, data }
}

/** The element at the indices; axes are aligned at the end, and those of size 1 are repeated. */
export function at({ shape, data }: Value, indices: readonly number[]): number {
  const skipped = indices.length - shape.length
  return data[shape.reduce((sum, size, axis) => sum * size + (size === 1 ? 0 : indices[skipped + axis]), 0)]
}

export function broadcast(values: readonly Value[], f: (...numbers: number[]) => number): Value {
  const rank = Math.max(...values.map(({ shape }) => shape.length))
  const shape = Array.from({ length: rank }, (_, axis) =>
    Math.max(...values.map(value => value.shape[axis - rank + value.shape.length] ?? 1))
  )
  for (const value of values) {
    const fits = value.shape.every((size, axis) => size === 1 || size === shape[rank - value.shape.length + axis])
    if (!fits) throw new Error(`[${value.shape}] is not broadcast to [${shape}]`)
  }
  return build(shape, indices => f(...values.map(value => at(value, indices))))
}

/** Replaces an axis by a function of the numbers along it. @param f returns as many numbers as the axis then has */
export function alongAxis(x: Value, axis: number, size: number, f: (numbers: number[]) => number[]): Value {
  const position = axis < 0 ? axis + x.shape.length : axis
  const lines = new Map<string, number[]>()
  return build(x.shape.with(position, size), indices => {
    const key = indices.with(position, 0).join()
    let line = lines.get(key)
    if (line === undefined) {
      line = f(Array.from({ length: x.shape[position] }, (_, k) => at(x, indices.with(position, k))))
      lines.set(key, line)
    }
    return line[indices[position]]
  })
}
