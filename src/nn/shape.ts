/** Arithmetic on shapes. */

export const FLOAT_BYTES = 4

/** Elements of a tensor of that shape. */
export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

/** Elements of all tensors together. */
export function totalSize(tensors: readonly { readonly shape: readonly number[] }[]): number {
  return tensors.reduce((sum, { shape }) => sum + sizeOf(shape), 0)
}

export function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis])
}

/** As people write it: 4×28×28. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? 'a number' : shape.join('×')
}
