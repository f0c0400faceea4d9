/**
 * Measures the time and memory of each layer on the opened device, on a few samples, because sizes and operation counts
 * alone do not predict a backend's speed. Layers of the same shape are measured once.
 */
import * as tf from '#tfjs'
import { layerCosts } from '../../nn/blocks.js'
import { executionProbability, firstTrained } from '../../nn/layer-order.js'
import { inFewBits } from '../../nn/layers/few-bits.js'
import { uniforms } from '../../nn/random.js'
import { type Deferred, FLOAT_BYTES, type Layer, type Model, type Pass, sizeOf, totalSize } from '../../nn/types.js'
import { deviceMeter, upload } from '../executor/step.js'
import { addToBlock } from '../executor/types.js'

export interface LayerProfile extends Variation {
  readonly name: string
  readonly kind: string
  readonly weightBytes: number
  /** Bytes of the gradients; fewer than of the weights if some are frozen. */
  readonly gradientBytes: number
  /** Peak bytes while the weights are loaded, including them. */
  readonly loadBytes: number
  /** Whether the backward pass reaches the layer: it is trained, or one below it is. */
  readonly hasBackward: boolean
  /** Bytes per sample of the output, and of the activations that can be saved. */
  readonly outputBytes: number
  readonly activationBytes: number
  /** Bytes per sample that the VJP keeps if the gradients of the weights are computed later. */
  readonly keptBytes: number
  /** Milliseconds per sample: forward pass, VJP with recomputation, and VJP with saved activations. */
  readonly forwardMs: number
  readonly vjpMs: number
  readonly savedVjpMs: number
  /** Peak bytes of a forward pass, without its arguments, including its output. */
  readonly forwardWork: Work
  /** Peak bytes of a forward pass that saves its activations, including them. */
  readonly savingWork: Work
  /** Peak bytes of a VJP with recomputation, and with saved activations. */
  readonly work: Work
  readonly savedWork: Work
}

/** Peak bytes for any number of samples: the maximum of lines, as the operation with the most bytes depends on the number. */
export type Work = readonly {
  /** Bytes that do not depend on the number of samples. */
  readonly fixed: number
  /** Bytes for each sample. */
  readonly sample: number
}[]

export function bytesAt(work: Work, samples: number): number {
  return work.reduce((most, { fixed, sample }) => Math.max(most, fixed + samples * sample), 0)
}

export interface DeviceProfile {
  /** Bytes per millisecond of transfers to and from the device. */
  readonly bytesPerMs: number
  /** Bytes per millisecond of gradients that a thread of the host adds. */
  readonly sumBytesPerMs: number
  readonly layers: readonly LayerProfile[]
  /** Loss and its gradient. */
  readonly head: {
    /** Milliseconds per sample. */
    readonly ms: number
    /** Peak bytes on the device, without the outputs. */
    readonly work: Work
  }
}

const PROBE_BYTES = 2 ** 22
/** Samples of the timed microbatch. */
const TIMED_SAMPLES = 8
const REPEATS = 4

/** Whether a layer's output is kept until the backward pass of the next layer. */
export function isKept(layers: readonly LayerProfile[], layer: number): boolean {
  return layers[layer].hasBackward || layers[layer + 1]?.hasBackward === true
}

/**
 * Takes about as long as a few small training steps.
 * @param isTimed otherwise it takes a third of that, and all times of layers are 0
 * @param bits as in `ExecutorOptions`
 */
export function profileModel(network: Model, isTimed = true, bits?: number): DeviceProfile {
  const model = inFewBits(network, bits)
  const cache = new Map<string, Measured>()
  const costs = layerCosts(model)
  const first = firstTrained(model, [...model.layers.keys()])
  const layers = model.layers.map((layer, l) => {
    const { kind, from = 0 } = layer
    const share = executionProbability(layer)
    const hasBackward = l >= first
    const key = shapeKey(layer, hasBackward)
    const measured = cache.get(key) ?? measure(layer, model, hasBackward, isTimed ? msPerSample : () => 0)
    cache.set(key, measured)
    const { name, weightBytes, gradientBytes, outputBytes, activationBytes } = costs[l]
    const bytes = {
      weightBytes,
      loadBytes: weightBytes + mergeBytes(layer),
      gradientBytes,
      outputBytes,
      activationBytes
    }
    return { name, kind, share, from, hasBackward, ...bytes, ...measured }
  })
  return { bytesPerMs: bandwidth(), sumBytesPerMs: sumBandwidth(), layers, head: measureHead(model) }
}

/** Equal for layers that take the same time and memory. */
function shapeKey(layer: Layer, hasBackward: boolean): string {
  const { kind, weights, frozen, shares, input, output, activations } = layer
  const mayBeSkipped = executionProbability(layer) < 1
  return JSON.stringify([kind, weights, frozen, shares, input, output, activations, mayBeSkipped, hasBackward])
}

type Measured = Pick<
  LayerProfile,
  'keptBytes' | 'forwardMs' | 'vjpMs' | 'savedVjpMs' | 'forwardWork' | 'savingWork' | 'work' | 'savedWork'
>

const PASS: Pass = { training: true, seed: 1 }

/** The passes of a layer on some samples. Call it within `tf.tidy`. */
interface LayerPasses {
  readonly weights: readonly tf.Tensor[]
  forward(): tf.Tensor
  /** VJP with recomputation. */
  vjp(): tf.Tensor
  /** Prepares the VJP with saved activations, which are computed now. */
  prepareSavedVjp(): () => tf.Tensor
}

function layerPasses(layer: Layer, model: Model, samples: number): LayerPasses {
  const frozen = layer.frozen && new Float32Array(totalSize(layer.frozen)).fill(0.01)
  const own = upload(layer, layer.weights.length === 0 ? undefined : layer.initialWeights(uniforms(1)), frozen)
  const others = (layer.shares ?? []).map(({ shape }) => tf.randomUniform([...shape], -1, 1, 'float32', 1))
  const weights = [...own, ...others]
  const x = inputOf(layer, model, samples)
  const dy = tf.ones([samples, ...layer.output])
  return {
    weights,
    forward: () => layer.forward(x, weights, PASS),
    vjp: () => anyOutput(layer.vjp(x, weights, dy, PASS)),
    prepareSavedVjp: () => {
      const { saved } = layer.forwardSaving(x, weights, PASS)
      return () => anyOutput(layer.vjp(x, weights, dy, PASS, saved))
    }
  }
}

function measure(layer: Layer, model: Model, hasBackward: boolean, msOf: typeof msPerSample): Measured {
  let measured: Measured | undefined
  tf.tidy(() => {
    const { weights, forward, vjp, prepareSavedVjp } = layerPasses(layer, model, TIMED_SAMPLES)
    const forwardMs = msOf(forward)
    const forwardWork = workOf(samples => forwardBytes(model, layer, samples, x => layer.forward(x, weights, PASS)))
    if (!hasBackward) {
      const none = { keptBytes: 0, vjpMs: 0, savedVjpMs: 0, work: [], savedWork: [] }
      measured = { forwardMs, forwardWork, savingWork: forwardWork, ...none }
      return
    }
    const vjpMs = msOf(vjp)
    const vjpWork = (isSaved: boolean) => workOf(samples => vjpBytes(layer, weights, model, samples, isSaved))
    measured = {
      keptBytes: keptBytes(layer, weights, model),
      forwardMs,
      vjpMs,
      savedVjpMs: Math.min(vjpMs, msOf(prepareSavedVjp())),
      forwardWork,
      savingWork: workOf(samples => forwardBytes(model, layer, samples, x => layer.forwardSaving(x, weights, PASS))),
      work: vjpWork(false),
      savedWork: vjpWork(true)
    }
  })
  return measured as Measured
}

/** Loss and gradient of some samples. Call it within `tf.tidy`. */
function headPass({ head, sample }: Model, samples: number): () => tf.Tensor {
  const y = tf.randomUniform([samples, ...head.input], -1, 1, 'float32', 1)
  const targets = sample.kind === 'tokens' && head.input.length > 1 ? [samples, ...sample.shape] : [samples]
  return () => head.lossAndGradient(y, tf.zeros(targets, head.classifies ? 'int32' : 'float32')).dx
}

function measureHead(model: Model): DeviceProfile['head'] {
  const work = workOf(samples => {
    let trace: Trace = []
    tf.tidy(() => {
      trace = traceOf(headPass(model, samples))
    })
    return trace
  })
  const ms = tf.tidy(() => minMs(headPass(model, TIMED_SAMPLES))) / TIMED_SAMPLES
  return { ms, work }
}

/** Bytes of the largest product of an adapter, which is added to its weight. */
function mergeBytes({ frozen = [], adapters = [] }: Layer): number {
  return FLOAT_BYTES * Math.max(0, ...adapters.map(({ weight }) => sizeOf(frozen[weight].shape)))
}

/** Milliseconds per sample. */
function msPerSample(work: () => tf.Tensor): number {
  return minMs(work) / TIMED_SAMPLES
}

/**
 * Minimum over several runs after a warm-up, including reading the result. The minimum, because the machine may be
 * shared.
 */
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

/** An output whose values are available only after the whole computation. */
function anyOutput({ dx, dWeights }: ReturnType<Layer['vjp']>): tf.Tensor {
  return dx ?? dWeights[0]
}

/** @param traceOf bytes after each allocation, for a number of samples */
function workOf(traceOf: (samples: number) => readonly number[]): Work {
  const few = TIMED_SAMPLES / 2
  let [first, second] = [traceOf(few), traceOf(TIMED_SAMPLES)]
  // A backend may allocate more often for more samples.
  if (first.length !== second.length) [first, second] = [[Math.max(0, ...first)], [Math.max(0, ...second)]]
  const lines = first.map((bytes, i) => {
    const sample = (second[i] - bytes) / (TIMED_SAMPLES - few)
    return { fixed: bytes - few * sample, sample }
  })
  const isBelow = (line: Work[number], other: Work[number]) => line.fixed <= other.fixed && line.sample <= other.sample
  return lines.filter(
    (line, i) => !lines.some((other, j) => i !== j && isBelow(line, other) && (j < i || !isBelow(other, line)))
  )
}

type Trace = readonly number[]

function forwardBytes(model: Model, layer: Layer, samples: number, forward: (x: tf.Tensor) => unknown): Trace {
  let trace: Trace = []
  tf.tidy(() => {
    const x = inputOf(layer, model, samples)
    trace = traceOf(() => forward(x))
  })
  return trace
}

function vjpBytes(layer: Layer, weights: readonly tf.Tensor[], model: Model, samples: number, isSaved: boolean): Trace {
  let trace: Trace = []
  tf.tidy(() => {
    const x = inputOf(layer, model, samples)
    const dy = tf.ones([samples, ...layer.output])
    const saved = isSaved ? layer.forwardSaving(x, weights, PASS).saved : undefined
    trace = traceOf(() => layer.vjp(x, weights, dy, PASS, saved))
  })
  return trace
}

function keptBytes(layer: Layer, weights: readonly tf.Tensor[], model: Model): number {
  const wanted = weights.map((): Deferred => ({}))
  const before = deviceMeter().bytes
  tf.tidy(() => {
    const x = inputOf(layer, model, 1)
    const { saved } = layer.forwardSaving(x, weights, PASS)
    layer.vjp(x, weights, tf.ones([1, ...layer.output]), { ...PASS, wanted }, saved)
  })
  const kept = deviceMeter().bytes - before
  tf.tidy(() => wanted.forEach(({ compute }) => void compute?.()))
  return kept
}

/** Bytes on the device after each allocation of `work`, without those before. */
function traceOf(work: () => unknown): Trace {
  const meter = deviceMeter()
  const before = meter.bytes
  const trace: number[] = []
  meter.trace = trace
  try {
    work()
  } finally {
    meter.trace = undefined
  }
  return trace.map(bytes => bytes - before)
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

/** Minimum over several runs. */
function sumBandwidth(): number {
  const [sum, values] = [0, 1].map(() => new Float32Array(PROBE_BYTES / FLOAT_BYTES))
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i <= REPEATS; i++) {
    const start = performance.now()
    addToBlock(sum, values)
    least = Math.min(least, performance.now() - start)
  }
  return PROBE_BYTES / least
}

/** Bytes per sample of the model's input. */
export function inputBytes({ sample }: Model): number {
  return sizeOf(sample.shape) * FLOAT_BYTES
}

/**
 * The layers that may be executed directly before or after each other when layers are skipped or added later. It
 * bounds what can be on the device at the same time.
 */
interface Variation {
  /** Probability that a training step executes the layer, once it takes part. */
  readonly share: number
  /** Number of updates after which the layer takes part. */
  readonly from: number
}

/** Indices of the layers that may directly follow and precede each layer, and of those that may be last. */
interface Neighbours {
  readonly after: readonly ReadonlySet<number>[]
  readonly before: readonly ReadonlySet<number>[]
  readonly ends: ReadonlySet<number>
}

export function neighboursOf(layers: readonly Variation[]): Neighbours {
  const after = layers.map(() => new Set<number>())
  const before = layers.map(() => new Set<number>())
  const ends = new Set<number>()
  for (const l of layers.keys()) {
    // The layers that may be the next one: up to the first that every step executes.
    const certain = layers.findIndex(({ share, from }, next) => next > l && share === 1 && from === 0)
    if (certain < 0) ends.add(l)
    for (let next = l + 1; next <= (certain < 0 ? layers.length - 1 : certain); next++) {
      after[l].add(next)
      before[next].add(l)
    }
  }
  return { after, before, ends }
}
