/**
 * Tensor operations that layers share: early disposal, operations in place, one-hot vectors, and matrix products.
 *
 * Without a BLAS the wasm backend is fast only at plain products of two matrices; transposed and
 * batched products run in a loop that takes ten times as long. There, transposes are explicit and large products of a batch are
 * computed one by one. Other devices compute the product directly.
 */
import { openedDevice, runFused } from '#device'
import * as tf from '#tfjs'
import type { Adapter, Deferred, Pullback, SavedForward, WantedGradient } from './types.js'

/** Runs a backward pass and disposes of every intermediate tensor except the gradients. */
export function tidyPullback(compute: () => Pullback): Pullback {
  let result: Pullback | undefined
  tf.tidy(() => {
    result = compute()
    return result.dx === undefined ? [...result.dWeights] : [result.dx, ...result.dWeights]
  })
  return result as Pullback
}

/** Runs a forward pass and disposes of every intermediate tensor except the output and the saved activations. */
export function tidySavedForward(compute: () => SavedForward): SavedForward {
  let result: SavedForward | undefined
  tf.tidy(() => {
    result = compute()
    return [result.y, ...result.saved]
  })
  return result as SavedForward
}

/** The gradients that are wanted of those of all weights. Disposes of the others. */
export function onlyWanted(gradients: readonly tf.Tensor[], wanted: readonly WantedGradient[] = []): tf.Tensor[] {
  tf.dispose(gradients.filter((_, i) => wanted[i] === 'none'))
  return gradients.filter((_, i) => wanted[i] !== 'none')
}

/** Runs `compute` and disposes of its inputs, which are not needed afterwards. */
export function consume(inputs: readonly tf.Tensor[], compute: () => tf.Tensor): tf.Tensor {
  const result = tf.tidy(compute)
  tf.dispose([...inputs])
  return result
}

/**
 * x + y, where y has the shape of x or of its last axes. May write into the memory of x.
 * @param x is disposed of
 */
export function addTo(x: tf.Tensor, y: tf.Tensor): tf.Tensor {
  return consume([x], () => runFused('AddInPlace', { x, y }) ?? tf.add(x, y))
}

/**
 * Elementwise x·y, where y has the shape of x. May write into the memory of x.
 * @param x is disposed of
 */
export function multiplyInto(x: tf.Tensor, y: tf.Tensor): tf.Tensor {
  return consume([x], () => runFused('MultiplyInPlace', { x, y }) ?? tf.mul(x, y))
}

/**
 * One-hot vectors of float32. They are made as integers and cast, because the wasm kernel writes integer bits for any
 * type.
 * @param indices int32
 * @param depth at least 2
 * @returns [...indices, depth]
 */
export function oneHot(indices: tf.Tensor, depth: number): tf.Tensor {
  return tf.tidy(() => tf.cast(tf.oneHot(indices as tf.Tensor1D, depth), 'float32'))
}

/** Multiplications per product above which a separate call is faster than wasm's slow loop (measured). */
const LARGE_PRODUCT = 40_000

function prefersPlainProducts(): boolean {
  return !openedDevice().hasFastProducts
}

/** Product of two matrices, each optionally transposed. */
export function multiply(a: tf.Tensor, b: tf.Tensor, transposeA = false, transposeB = false): tf.Tensor {
  if (!prefersPlainProducts()) return tf.matMul(a as tf.Tensor2D, b as tf.Tensor2D, transposeA, transposeB)
  return tf.tidy(() =>
    tf.matMul((transposeA ? tf.transpose(a) : a) as tf.Tensor2D, (transposeB ? tf.transpose(b) : b) as tf.Tensor2D)
  )
}

/** Products of two batches of matrices, each optionally transposed: [batch, n, k]·[batch, k, m]. */
export function multiplyBatch(a: tf.Tensor, b: tf.Tensor, transposeA = false, transposeB = false): tf.Tensor {
  const [batch, rows, columns] = a.shape as number[]
  const size = rows * columns * (b.shape as number[])[transposeB ? 1 : 2]
  if (!prefersPlainProducts() || size < LARGE_PRODUCT) {
    return tf.matMul(a as tf.Tensor3D, b as tf.Tensor3D, transposeA, transposeB)
  }
  return tf.tidy(() => {
    const left = matricesOf(a, transposeA)
    const right = matricesOf(b, transposeB)
    const products = Array.from({ length: batch }, (_, i) =>
      tf.tidy(() => tf.matMul(left(i) as tf.Tensor2D, right(i) as tf.Tensor2D))
    )
    return tf.stack(products)
  })
}

/**
 * Returns the i-th matrix of a batch. Reads through the host, which is the same memory on wasm: `Slice` copies the
 * whole batch each time.
 */
function matricesOf(batch: tf.Tensor, isTransposed: boolean): (index: number) => tf.Tensor {
  const matrices = isTransposed ? tf.transpose(batch, [0, 2, 1]) : batch
  const [, rows, columns] = matrices.shape as number[]
  const numbers = matrices.dataSync()
  if (isTransposed) matrices.dispose()
  const size = rows * columns
  return index => tf.tensor(numbers.subarray(index * size, (index + 1) * size), [rows, columns])
}

/** x·W over the last axis of x. */
export function project(x: tf.Tensor, kernel: tf.Tensor): tf.Tensor {
  return tf.tidy(() => tf.reshape(multiply(asRows(x), kernel), [...x.shape.slice(0, -1), kernel.shape[1] as number]))
}

/** dy·Wᵀ over the last axis of dy. */
export function projectTransposed(dy: tf.Tensor, kernel: tf.Tensor): tf.Tensor {
  return (
    runFused('AffineBack', { dy, kernel }) ??
    tf.tidy(() =>
      tf.reshape(multiply(asRows(dy), kernel, false, true), [...dy.shape.slice(0, -1), kernel.shape[0] as number])
    )
  )
}

/** Gradients of `project(x, kernel) + bias` with respect to kernel and bias, summed over all axes but the last. */
export function projectionGradients(
  x: tf.Tensor,
  dy: tf.Tensor,
  [kernel = 'full', bias = 'full']: readonly WantedGradient[] = []
): tf.Tensor[] {
  if (isDeferred(kernel) && isDeferred(bias)) {
    bias.compute = () => []
    return defer(kernel, x, dy, projectionGradients)
  }
  const fused = kernel === 'full' && bias === 'full' ? runFused<tf.Tensor[]>('AffineGradients', { x, dy }) : undefined
  return fused ?? [...kernelGradients(x, dy, kernel), ...(bias === 'full' ? [sumOfRows(dy)] : [])]
}

/** Gradients of `project(x, kernel)` with respect to the kernel, or to its adapter. */
export function kernelGradients(x: tf.Tensor, dy: tf.Tensor, wanted: WantedGradient = 'full'): tf.Tensor[] {
  if (wanted === 'none') return []
  if (isDeferred(wanted)) return defer(wanted, x, dy, kernelGradients)
  if (wanted !== 'full') return adapterGradients(x, dy, wanted)
  return [tf.tidy(() => multiply(asRows(x), asRows(dy), true, false))]
}

function isDeferred(wanted: WantedGradient): wanted is Deferred {
  return typeof wanted === 'object' && !('scale' in wanted)
}

/** Keeps x and dy, which share their memory with the caller's, until the gradients are computed. */
function defer(
  later: Deferred,
  x: tf.Tensor,
  dy: tf.Tensor,
  gradientsOf: (x: tf.Tensor, dy: tf.Tensor) => tf.Tensor[]
): tf.Tensor[] {
  const kept = [x, dy].map(tensor => tf.keep(tf.clone(tensor)))
  later.compute = () => {
    const gradients = gradientsOf(kept[0], kept[1])
    tf.dispose(kept)
    return gradients
  }
  return []
}

/** scale·xᵀ·dy·Bᵀ and scale·(x·A)ᵀ·dy, without the product xᵀ·dy. */
function adapterGradients(x: tf.Tensor, dy: tf.Tensor, { a, b, scale }: Adapter): tf.Tensor[] {
  return tf.tidy(() => {
    const [rows, dRows] = [asRows(x), asRows(dy)]
    const back = multiply(dRows, diagonal(a, b), false, true)
    const dB = multiply(multiply(rows, a), dRows, true, false)
    return [tf.mul(multiply(rows, back, true, false), scale), tf.mul(diagonalParts(dB, a, b), scale)]
  })
}

/** kernel + scale·A·B. May write into the memory of the kernel. @param kernel is disposed of */
export function addAdapter(kernel: tf.Tensor, { a, b, scale }: Adapter): tf.Tensor {
  const product = tf.tidy(() => multiply(tf.mul(a, scale), diagonal(a, b)))
  return consume([product], () => addTo(kernel, product))
}

/** The parts of b on the diagonal of a matrix [parts·rank, outputs], so that its product with a is that of each part. */
function diagonal(a: tf.Tensor, b: tf.Tensor): tf.Tensor {
  const [rank, outputs] = b.shape as number[]
  const parts = (a.shape[1] as number) / rank
  const width = outputs / parts
  if (parts === 1) return b
  return tf.tidy(() => {
    const rows = Array.from({ length: parts }, (_, k) =>
      tf.pad(tf.slice(b, [0, k * width], [rank, width]), [
        [0, 0],
        [k * width, outputs - (k + 1) * width]
      ])
    )
    return tf.concat(rows, 0)
  })
}

/** The inverse of `diagonal`. */
function diagonalParts(d: tf.Tensor, a: tf.Tensor, b: tf.Tensor): tf.Tensor {
  const [rank, outputs] = b.shape as number[]
  const parts = (a.shape[1] as number) / rank
  const width = outputs / parts
  if (parts === 1) return d
  return tf.concat(
    Array.from({ length: parts }, (_, k) => tf.slice(d, [k * rank, k * width], [rank, width])),
    1
  )
}

/**
 * Sum over all axes but the last. By a product with ones if there is no kernel, because a backend's sum over the first
 * axis can be many times slower.
 */
export function sumOfRows(x: tf.Tensor): tf.Tensor {
  return (
    runFused('SumRows', { x }) ??
    tf.tidy(() => {
      const rows = asRows(x)
      return tf.reshape(multiply(tf.ones([1, rows.shape[0]]), rows), [rows.shape[1] as number])
    })
  )
}

/** Mean along the last axis, which remains with length 1. Computed as a product, as in `sumOfRows`. */
export function meanOfLastAxis(x: tf.Tensor): tf.Tensor {
  const width = x.shape[x.rank - 1] as number
  return tf.tidy(() => tf.reshape(multiply(asRows(x), tf.fill([width, 1], 1 / width)), [...x.shape.slice(0, -1), 1]))
}

/** Reshaped to [rows, last axis], sharing memory. */
export function asRows(x: tf.Tensor): tf.Tensor {
  return tf.reshape(x, [-1, x.shape[x.rank - 1] as number])
}

/** `project(x, kernel) + bias`. */
export function affine(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor): tf.Tensor {
  return runFused('Affine', { x, kernel, bias }) ?? addTo(project(x, kernel), bias)
}
