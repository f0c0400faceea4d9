/** Shape arithmetic. */

export const FLOAT_BYTES = 4

/** Number of elements of a tensor. */
export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

/** Number of elements of all tensors together. */
export function totalSize(tensors: readonly { readonly shape: readonly number[] }[]): number {
  return tensors.reduce((sum, { shape }) => sum + sizeOf(shape), 0)
}

export function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis])
}

/** For messages: `4×28×28`. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? 'a number' : shape.join('×')
}
