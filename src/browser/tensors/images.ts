/** Convolutions and pooling of images [count, height, width, channels], as matrix products of their patches. */
import { multiply } from './products.js'
import { Tensor } from './tensor.js'

/** Zeros around an image: as many as make ⌈length/stride⌉ outputs, none, or those before and after each axis. */
type Padding = 'same' | 'valid' | readonly (readonly [before: number, after: number])[]

/** The places of a kernel along one axis of an image. */
interface Axis {
  readonly length: number
  readonly size: number
  readonly stride: number
  readonly dilation: number
  readonly before: number
  readonly outputs: number
}

function axisOf(length: number, size: number, stride: number, dilation: number, padding: Padding, axis: number): Axis {
  const extent = (size - 1) * dilation + 1
  const [before, after] = zerosOf(length, extent, stride, padding, axis)
  const outputs = Math.floor((length + before + after - extent) / stride) + 1
  return { length, size, stride, dilation, before, outputs }
}

function zerosOf(length: number, extent: number, stride: number, padding: Padding, axis: number): readonly number[] {
  if (padding === 'valid') return [0, 0]
  if (padding !== 'same') return padding[axis]
  const zeros = Math.max(0, (Math.ceil(length / stride) - 1) * stride + extent - length)
  return [Math.floor(zeros / 2), zeros - Math.floor(zeros / 2)]
}

/**
 * Calls `use` for each part of a patch within an image: a row of the kernel's window at an output is a run of the patch.
 * @param use with the start of the pixel in the image, and of the place in the patches [outputs, size, size, channels]
 */
function eachPixel(rows: Axis, columns: Axis, channels: number, use: (pixel: number, place: number) => void): void {
  let place = 0
  for (let y = 0; y < rows.outputs; y++) {
    for (let x = 0; x < columns.outputs; x++) {
      for (let i = 0; i < rows.size; i++) {
        const row = y * rows.stride + i * rows.dilation - rows.before
        for (let j = 0; j < columns.size; j++, place += channels) {
          const column = x * columns.stride + j * columns.dilation - columns.before
          if (row < 0 || row >= rows.length || column < 0 || column >= columns.length) continue
          use((row * columns.length + column) * channels, place)
        }
      }
    }
  }
}

/** @param kernel [height, width, channels, filters] */
export function conv2d(
  x: Tensor,
  kernel: Tensor,
  stride: number,
  padding: Padding,
  _format: 'NHWC' = 'NHWC',
  dilation = 1
): Tensor {
  const [count, height, width, channels] = x.shape
  const [kernelHeight, kernelWidth, , filters] = kernel.shape
  const rows = axisOf(height, kernelHeight, stride, dilation, padding, 1)
  const columns = axisOf(width, kernelWidth, stride, dilation, padding, 2)
  const [outputs, patch] = [rows.outputs * columns.outputs, kernelHeight * kernelWidth * channels]
  const result = new Float32Array(count * outputs * filters)
  const patches = new Float32Array(outputs * patch)
  for (let n = 0; n < count; n++) {
    const image = x.values.subarray(n * height * width * channels, (n + 1) * height * width * channels)
    eachPixel(rows, columns, channels, (pixel, place) => {
      for (let c = 0; c < channels; c++) patches[place + c] = image[pixel + c]
    })
    const sums = result.subarray(n * outputs * filters, (n + 1) * outputs * filters)
    multiply(patches, kernel.values as Float32Array, sums, [outputs, patch, filters])
  }
  return new Tensor(result, [count, rows.outputs, columns.outputs, filters], 'float32')
}

/** The maxima of squares that do not overlap. Incomplete ones at the edges are left out. */
export function maxPool(x: Tensor, size: number, stride: number, padding: 'valid'): Tensor {
  const [count, height, width, channels] = x.shape
  const rows = axisOf(height, size, stride, 1, padding, 1)
  const columns = axisOf(width, size, stride, 1, padding, 2)
  const [outputs, cells] = [rows.outputs * columns.outputs, size * size]
  const result = new Float32Array(count * outputs * channels).fill(Number.NEGATIVE_INFINITY)
  for (let n = 0; n < count; n++) {
    const image = n * height * width * channels
    eachPixel(rows, columns, channels, (pixel, place) => {
      const to = n * outputs * channels + Math.floor(place / (cells * channels)) * channels
      for (let c = 0; c < channels; c++) result[to + c] = Math.max(result[to + c], x.values[image + pixel + c])
    })
  }
  return new Tensor(result, [count, rows.outputs, columns.outputs, channels], 'float32')
}
