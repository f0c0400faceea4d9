/**
 * Saved activations in few bits. Forward passes stay exact, and backward passes use rounded numbers:
 *
 * - The derivative of GELU is rounded to the levels of its best piecewise constant approximation. Source: Novikov et al., "Few-Bit
 *   Backward: Quantized Gradients of Activation Functions for Memory Footprint Reduction", 2022.
 * - Outputs of softmax, norms and activations are rounded to 2^bits evenly spaced levels between the minimum and the maximum of their
 *   row. Source: Chen et al., "ActNN", 2021, which rounds at random.
 *
 * TensorFlow.js has no narrow types, so JavaScript packs the codes into an int32 tensor of the device. On wasm and cpu the device's
 * memory is the host's; other devices copy each activation to the host and back.
 */
import * as tf from '#tfjs'
import { consume, tidyPullback, tidySavedForward } from '../ops.js'
import { type ActivationCode, type Layer, type Model, sizeOf } from '../types.js'

/** The model whose layers save what they can in few bits. @param bits 1 to 8 @default the model as it is */
export function inFewBits(model: Model, bits: number | undefined): Model {
  return bits === undefined ? model : { ...model, layers: model.layers.map(layer => fewBitLayer(layer, bits)) }
}

function fewBitLayer(layer: Layer, bits: number): Layer {
  const { activations, codes = [] } = layer
  if (!codes.some(code => code !== 'exact')) return layer
  const codecs = activations.map((shape, i) => codecOf(codes[i], shape, bits))
  return {
    ...layer,
    activations: activations.map((shape, i) => codecs[i]?.packed ?? shape),
    forwardSaving: (x, weights, pass) =>
      tidySavedForward(() => {
        const { y, saved } = layer.forwardSaving(x, weights, pass)
        return { y, saved: saved.map((tensor, i) => codecs[i]?.pack(tensor) ?? tensor) }
      }),
    vjp: (x, weights, dy, pass, saved) =>
      tidyPullback(() => {
        const exact = saved?.map((tensor, i) => codecs[i]?.unpack(tensor) ?? tensor)
        return layer.vjp(x, weights, dy, pass, exact)
      })
  }
}

interface Codec {
  /** Shape of a sample's words. */
  readonly packed: readonly number[]
  /** @param tensor float32 [microbatch, …shape], which is disposed of @returns int32 [microbatch, …packed] */
  pack(tensor: tf.Tensor): tf.Tensor
  unpack(words: tf.Tensor): tf.Tensor
}

/** A sample has the minimum and the step of each row, as the bits of float32, and then the codes; no code spans two words. */
function codecOf(code: ActivationCode, shape: readonly number[], bits: number): Codec | undefined {
  if (code === 'exact') return undefined
  const size = sizeOf(shape)
  const perWord = Math.floor(32 / bits)
  const mask = 2 ** bits - 1
  /** Bits of a word before its last code. */
  const full = (perWord - 1) * bits
  const isSlope = code === 'slope'
  const row = isSlope ? size : (shape.at(-1) as number)
  const header = isSlope ? 0 : (2 * size) / row
  const words = header + Math.ceil(size / perWord)
  const table = isSlope ? slopeTable(bits) : undefined

  return {
    packed: [words],
    pack: tensor =>
      consume([tensor], () => {
        const values = tensor.dataSync() as Float32Array
        const samples = values.length / size
        const packed = new Int32Array(samples * words)
        const scales = new Float32Array(packed.buffer)
        for (let sample = 0; sample < samples; sample++) {
          let at = sample * size
          let word = sample * words + header
          let filled = 0
          let shift = 0
          for (let k = 0; k < size / row; k++) {
            const end = at + row
            let min = LOWEST
            let factor = BINS_PER_UNIT
            if (!isSlope) {
              let max = values[at]
              min = max
              for (let i = at + 1; i < end; i++) {
                const value = values[i]
                if (value < min) min = value
                else if (value > max) max = value
              }
              const step = (max - min) / mask
              scales[sample * words + 2 * k] = min
              scales[sample * words + 2 * k + 1] = step
              factor = step > 0 ? 1 / step : 0
            }
            for (; at < end; at++) {
              const place = ((values[at] - min) * factor + 0.5) | 0
              filled |= (table === undefined ? place : table.codes[place]) << shift
              shift += bits
              if (shift > full) {
                packed[word++] = filled
                filled = 0
                shift = 0
              }
            }
          }
          if (shift > 0) packed[word] = filled
        }
        return tf.tensor(packed, [samples, words], 'int32')
      }),
    unpack(tensor) {
      const packed = tensor.dataSync() as Int32Array
      const scales = new Float32Array(packed.buffer, packed.byteOffset, packed.length)
      const samples = packed.length / words
      const values = new Float32Array(samples * size)
      for (let sample = 0, at = 0; sample < samples; sample++) {
        let word = sample * words + header
        let shift = 0
        for (let k = 0; k < size / row; k++) {
          const min = isSlope ? 0 : scales[sample * words + 2 * k]
          const step = isSlope ? 0 : scales[sample * words + 2 * k + 1]
          for (const end = at + row; at < end; at++) {
            const code = (packed[word] >>> shift) & mask
            values[at] = table === undefined ? min + code * step : table.levels[code]
            shift += bits
            if (shift > full) {
              word++
              shift = 0
            }
          }
        }
      }
      return tf.tensor(values, [samples, ...shape])
    }
  }
}

/** Derivatives of GELU are between these. */
const LOWEST = -0.13
const HIGHEST = 1.13
const BINS_PER_UNIT = 4096
/** Inputs of GELU are seldom farther from 0, and the derivative there is 0 or 1. */
const SPAN = 5
const POINTS = 400

interface SlopeTable {
  readonly levels: Float32Array
  /** The nearest level of each bin. */
  readonly codes: Uint8Array
}

const tables = new Map<number, SlopeTable>()

function slopeTable(bits: number): SlopeTable {
  const made = tables.get(bits)
  if (made !== undefined) return made
  const levels = slopeLevels(2 ** bits)
  const codes = new Uint8Array(Math.round((HIGHEST - LOWEST) * BINS_PER_UNIT) + 1)
  for (let bin = 0, code = 0; bin < codes.length; bin++) {
    const slope = LOWEST + bin / BINS_PER_UNIT
    while (code + 1 < levels.length && levels[code + 1] - slope < slope - levels[code]) code++
    codes[bin] = code
  }
  const table = { levels, codes }
  tables.set(bits, table)
  return table
}

/**
 * The levels with the smallest integral of squared differences from the derivative of GELU over z from −5 to 5, by a dynamic program over
 * the sorted values.
 */
function slopeLevels(count: number): Float32Array {
  const slopes = Float64Array.from({ length: POINTS }, (_, i) => geluSlope((2 * SPAN * i) / (POINTS - 1) - SPAN)).sort()
  const [sums, squares] = [new Float64Array(POINTS + 1), new Float64Array(POINTS + 1)]
  for (const [i, slope] of slopes.entries()) {
    sums[i + 1] = sums[i] + slope
    squares[i + 1] = squares[i] + slope * slope
  }
  const cost = (from: number, to: number) =>
    Math.max(0, squares[to] - squares[from] - (sums[to] - sums[from]) ** 2 / (to - from))
  let best = Float64Array.from({ length: POINTS + 1 }, (_, to) => (to === 0 ? 0 : cost(0, to)))
  const starts: Uint16Array[] = [new Uint16Array(POINTS + 1)]
  for (let level = 1; level < count; level++) {
    const next = new Float64Array(POINTS + 1).fill(Number.POSITIVE_INFINITY)
    const start = new Uint16Array(POINTS + 1)
    for (let to = level + 1; to <= POINTS; to++) {
      for (let from = level; from < to; from++) {
        const total = best[from] + cost(from, to)
        if (total < next[to]) [next[to], start[to]] = [total, from]
      }
    }
    best = next
    starts.push(start)
  }
  const levels = new Float32Array(count)
  for (let level = count - 1, to = POINTS; level >= 0; level--) {
    const from = starts[level][to]
    levels[level] = (sums[to] - sums[from]) / (to - from)
    to = from
  }
  return levels
}

/** Derivative of z·σ(a·z³ + b·z), as in `dense.ts`. */
function geluSlope(z: number): number {
  const [a, b] = [2 * Math.sqrt(2 / Math.PI) * 0.044715, 2 * Math.sqrt(2 / Math.PI)]
  const gate = 1 / (1 + Math.exp(-(a * z ** 3 + b * z)))
  return gate + z * gate * (1 - gate) * (3 * a * z * z + b)
}
