/**
 * What each layer costs on the device at hand: measured, on a few samples, because sizes
 * and multiplications alone say little about a backend. Layers of the same shape are measured once.
 */
import * as tf from '@tensorflow/tfjs-core'
import { layerCosts } from '../../nn/costs.js'
import { executionProbability } from '../../nn/layer-order.js'
import { uniforms } from '../../nn/random.js'
import { FLOAT_BYTES, sizeOf } from '../../nn/shape.js'
import type { Layer, Model } from '../../nn/types.js'
import { upload } from '../block-tensors.js'
import { deviceMeter } from '../executor/meter.js'
import type { Variation } from './neighbours.js'

export interface LayerProfile extends Variation {
  readonly name: string
  readonly kind: string
  readonly weightBytes: number
  /** Bytes a sample: of the output, and of the insides that can be kept. */
  readonly outputBytes: number
  readonly activationBytes: number
  /** Milliseconds a sample: forward, the whole VJP with what it computes again, and the VJP given the insides. */
  readonly forwardMs: number
  readonly vjpMs: number
  readonly savedVjpMs: number
  /** The most that a forward pass has on the device beside what it is given, its output included. */
  readonly forwardWork: Work
  /** The same of one that keeps its insides, which are included. */
  readonly savingWork: Work
  /** The same of a VJP: when it computes the insides again, and when not. */
  readonly work: Work
  readonly savedWork: Work
}

/** Bytes: fixed, and a sample. */
export interface Work {
  readonly fixed: number
  readonly sample: number
}

export interface DeviceProfile {
  /** Bytes a millisecond, to the device and back. */
  readonly bytesPerMs: number
  readonly layers: readonly LayerProfile[]
  /** Loss and its gradient. */
  readonly head: {
    /** Milliseconds a sample. */
    readonly ms: number
    /** The most on the device beside the outputs that are judged. */
    readonly work: Work
  }
}

const PROBE_BYTES = 2 ** 22
/** Samples of the microbatch whose time is taken. */
const TIMED_SAMPLES = 8
const REPEATS = 4

/** Takes as long as a few small steps. */
export function profileModel(model: Model): DeviceProfile {
  const known = new Map<string, Measured>()
  const costs = layerCosts(model)
  const layers = model.layers.map((layer, l) => {
    const { weights, input, output, activations: insides, kind, from = 0, shuffle } = layer
    const share = executionProbability(layer)
    const alike = JSON.stringify([kind, weights, input, output, insides, share < 1])
    const measured = known.get(alike) ?? measure(layer, model)
    known.set(alike, measured)
    const { name, weightBytes, outputBytes, activationBytes } = costs[l]
    return { name, kind, share, from, shuffle, weightBytes, outputBytes, activationBytes, ...measured }
  })
  return { bytesPerMs: bandwidth(), layers, head: measureHead(model) }
}

type Measured = Pick<
  LayerProfile,
  'forwardMs' | 'vjpMs' | 'savedVjpMs' | 'forwardWork' | 'savingWork' | 'work' | 'savedWork'
>

const PASS = { training: true, seed: 1 }

function measure(layer: Layer, model: Model): Measured {
  let measured: Measured | undefined
  tf.tidy(() => {
    const weights = layer.weights.length === 0 ? [] : upload(layer, layer.initialWeights(uniforms(1)))
    const x = inputOf(layer, model, TIMED_SAMPLES)
    const dy = tf.ones([TIMED_SAMPLES, ...layer.output])
    const { saved: kept } = layer.forwardSaving(x, weights, PASS)
    const vjpMs = msPerSample(() => anyOutput(layer.vjp(x, weights, dy, PASS)))
    measured = {
      forwardMs: msPerSample(() => layer.forward(x, weights, PASS)),
      vjpMs,
      savedVjpMs: Math.min(
        vjpMs,
        msPerSample(() => anyOutput(layer.vjp(x, weights, dy, PASS, kept)))
      ),
      forwardWork: workOf(samples => forwardBytes(model, layer, samples, x => layer.forward(x, weights, PASS))),
      savingWork: workOf(samples => forwardBytes(model, layer, samples, x => layer.forwardSaving(x, weights, PASS))),
      work: workOf(samples => vjpBytes(layer, weights, model, samples, false)),
      savedWork: workOf(samples => vjpBytes(layer, weights, model, samples, true))
    }
  })
  return measured as Measured
}

function measureHead({ head, sample }: Model): DeviceProfile['head'] {
  const judge = (samples: number, y: tf.Tensor) => {
    const targets = sample.kind === 'tokens' && head.input.length > 1 ? [samples, ...sample.shape] : [samples]
    return head.lossAndGradient(y, tf.zeros(targets, head.classifies ? 'int32' : 'float32')).dx
  }
  const outputs = (samples: number) => tf.randomUniform([samples, ...head.input], -1, 1, 'float32', 1)
  const work = workOf(samples =>
    tf.tidy(() => {
      const y = outputs(samples)
      return peakOf(() => judge(samples, y))
    })
  )
  const y = outputs(TIMED_SAMPLES)
  const ms = msPerSample(() => judge(TIMED_SAMPLES, y))
  y.dispose()
  return { ms, work }
}

/** Milliseconds a sample. */
function msPerSample(work: () => tf.Tensor): number {
  return minMs(work) / TIMED_SAMPLES
}

/** The least of a few, with reading the result, after one that warms up: others use the machine as well. */
function minMs(work: () => tf.Tensor): number {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i <= REPEATS; i++) {
    tf.tidy(() => {
      const start = performance.now()
      work().dataSync()
      if (i > 0) least = Math.min(least, performance.now() - start)
    })
  }
  return least
}

/** Something whose values are there only when all is computed. */
function anyOutput({ dx, dWeights }: ReturnType<Layer['vjp']>): tf.Tensor {
  return dx ?? dWeights[0]
}

/** @param bytesOf the most for so many samples */
function workOf(bytesOf: (samples: number) => number): Work {
  const one = bytesOf(1)
  const first = bytesOf(2) - one
  // What is the most for a few samples need not be the most for many.
  const later = (bytesOf(TIMED_SAMPLES) - bytesOf(TIMED_SAMPLES / 2)) / (TIMED_SAMPLES / 2)
  return { fixed: one - first, sample: Math.max(first, later) }
}

function forwardBytes(model: Model, layer: Layer, samples: number, forward: (x: tf.Tensor) => unknown): number {
  return tf.tidy(() => {
    const x = inputOf(layer, model, samples)
    return peakOf(() => forward(x))
  })
}

function vjpBytes(layer: Layer, weights: readonly tf.Tensor[], model: Model, samples: number, keeps: boolean): number {
  return tf.tidy(() => {
    const x = inputOf(layer, model, samples)
    const dy = tf.ones([samples, ...layer.output])
    const kept = keeps ? layer.forwardSaving(x, weights, PASS).saved : undefined
    return peakOf(() => layer.vjp(x, weights, dy, PASS, kept))
  })
}

/** The most bytes that the work has on the device beside those that are there. */
function peakOf(work: () => unknown): number {
  const meter = deviceMeter()
  meter.resetPeak()
  const before = meter.bytes
  work()
  return meter.peakBytes - before
}

function inputOf(layer: Layer, model: Model, samples: number): tf.Tensor {
  const shape = [samples, ...layer.input]
  const isTokens = model.sample.kind === 'tokens' && layer === model.layers[0]
  return isTokens ? tf.zeros(shape, 'int32') : tf.randomUniform(shape, -1, 1, 'float32', 1)
}

function bandwidth(): number {
  const values = new Float32Array(PROBE_BYTES / FLOAT_BYTES)
  return (2 * PROBE_BYTES) / minMs(() => tf.tensor(values))
}

/** Bytes a sample of the model's input. */
export function inputBytes({ sample }: Model): number {
  return sizeOf(sample.shape) * FLOAT_BYTES
}
