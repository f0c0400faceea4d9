/**
 * Tensor parallelism (Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism", 2019,
 * section 3): a device's share of a model, of its weights, and gradients of whole weights from those of all shares. Devices get
 * consecutive heads or units, as equal in number as possible, and execute the layers that do not split as a whole.
 */
import { type Layer, type LayerSplit, type Model, sizeOf, totalSize } from './types.js'

/** A device of a group, counted from 0, and the number of devices in the group. */
export interface DeviceShare {
  readonly device: number
  readonly devices: number
}

/** The units of a layer that a device has. The last device has the largest share. */
function unitsOf({ units }: LayerSplit, { device, devices }: DeviceShare): [from: number, to: number] {
  return [Math.floor((device * units) / devices), Math.floor(((device + 1) * units) / devices)]
}

/** @param sum see `LayerSplit` */
export function modelShare(model: Model, share: DeviceShare, sum: Parameters<LayerSplit['share']>[1]): Model {
  const layers = model.layers.map((layer): Layer => {
    if (layer.split === undefined) return layer
    const [from, to] = unitsOf(layer.split, share)
    return { ...layer.split.share(to - from, sum), from: layer.from }
  })
  return { ...model, layers }
}

/** A weight as a matrix, and the columns of each of its parts, or the rows, that a device has. */
interface Slice {
  readonly rows: readonly [from: number, to: number]
  /** Ranges of a row. */
  readonly columns: readonly (readonly [from: number, to: number])[]
  readonly width: number
}

function slicesOf({ weights, split }: Layer, share: DeviceShare): Slice[] {
  const { units, axes } = split as LayerSplit
  const [from, to] = unitsOf(split as LayerSplit, share)
  return weights.map(({ shape, parts = 1 }, weight) => {
    const width = shape.at(-1) as number
    const height = sizeOf(shape) / width
    const whole = [0, width] as const
    if (axes[weight] === 'rows')
      return { rows: [(from * height) / units, (to * height) / units], columns: [whole], width }
    if (axes[weight] !== 'columns') return { rows: [0, height], columns: [whole], width }
    const each = width / parts
    const columns = Array.from({ length: parts }, (_, part) => {
      const start = part * each
      return [start + (from * each) / units, start + (to * each) / units] as const
    })
    return { rows: [0, height], columns, width }
  })
}

/** Calls `use` with consecutive numbers of the slice: their place in the weight, and in the share. */
function eachRun({ rows, columns, width }: Slice, use: (at: number, end: number, inShare: number) => void): number {
  let inShare = 0
  for (let row = rows[0]; row < rows[1]; row++) {
    for (const [from, to] of columns) {
      use(row * width + from, row * width + to, inShare)
      inShare += to - from
    }
  }
  return inShare
}

/** A device's share of the block of a layer that splits. */
export function blockShare(layer: Layer, block: Float32Array, share: DeviceShare): Float32Array {
  const slices = slicesOf(layer, share)
  const result = new Float32Array(slices.reduce((sum, slice) => sum + eachRun(slice, () => {}), 0))
  let [offset, before] = [0, 0]
  for (const [weight, slice] of slices.entries()) {
    const isOwn = layer.split?.axes[weight] !== 'first' || share.device === 0
    const start = offset
    offset += eachRun(slice, (at, end, inShare) => {
      if (isOwn) result.set(block.subarray(before + at, before + end), start + inShare)
    })
    before += sizeOf(layer.weights[weight].shape)
  }
  return result
}

/**
 * The gradients of the weights of a layer that splits, as one block.
 * @param shares gradients of each device's weights; the first device's count for weights that all devices have
 */
export function mergedGradients(layer: Layer, shares: readonly (readonly Float32Array[])[]): Float32Array {
  const block = new Float32Array(totalSize(layer.weights))
  for (const [device, gradients] of shares.entries()) {
    let before = 0
    for (const [weight, slice] of slicesOf(layer, { device, devices: shares.length }).entries()) {
      const axis = layer.split?.axes[weight]
      if (device === 0 || axis === 'columns' || axis === 'rows') {
        eachRun(slice, (at, end, inShare) =>
          block.set(gradients[weight].subarray(inShare, inShare + end - at), before + at)
        )
      }
      before += sizeOf(layer.weights[weight].shape)
    }
  }
  return block
}
