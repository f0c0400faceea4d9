/**
 * The two halves of a transformer block as separate layers, which keeps the activations of each small: attention and a
 * two-layer perceptron, each with layer norm, dropout and a residual connection. With the norm before: y = x +
 * drop(f(norm(x))), as in GPT-2; with the norm after: y = norm(x + drop(f(x))), as in BERT.
 */
import * as tf from '#tfjs'
import { addTo, consume, kernelGradients, project, projectTransposed, tidyPullback, tidySavedForward } from '../ops.js'
import { glorotUniform } from '../random.js'
import type { Activation } from '../spec/layer-kinds.js'
import { formatShape, type Layer, type LayerSplit, ModelError, type Pass, sameShape } from '../types.js'
import { type AttentionOptions, attention } from './attention.js'
import { dense } from './dense.js'
import { layerNorm, rmsNorm } from './norms.js'
import { type RotaryAttentionOptions, rotaryAttention } from './rotary-attention.js'
import { dropout } from './weightless.js'
import { sequence } from './wrappers.js'

interface ResidualBlockOptions {
  readonly norm: 'before' | 'after' | 'none'
  /** Whether the norm divides by the root mean square. @default false */
  readonly isRms?: boolean
  /** ε of the norm. @default 1e-5 */
  readonly epsilon?: number
  readonly hasShortcut: boolean
  /** Dropout rate of the output in training; 0 for none. */
  readonly dropout: number
  /** Fraction of the training steps that skip the layer; requires the shortcut, and no norm after it. @default 0 */
  readonly skip?: number
}

interface AttentionLayerOptions extends ResidualBlockOptions, AttentionOptions {}

interface PerceptronLayerOptions extends ResidualBlockOptions {
  readonly name: string
  readonly length: number
  readonly width: number
  /** Width between the two projections. */
  readonly inner: number
  readonly activation: Activation
  readonly gain?: number
}

/**
 * Weights: norm.scale, norm.offset, qkv.kernel, qkv.bias, out.kernel, out.bias (norm last if it comes after).
 * @throws ModelError if the heads do not divide the width
 */
export function attentionLayer(options: AttentionLayerOptions): Layer {
  const { name, width, heads } = options
  if (width % heads !== 0) throw new ModelError(`layer ${name}: ${heads} heads do not divide the width ${width}`)
  const coreOf = (units: number) => [attention({ ...options, name: '', heads: units, inner: (units * width) / heads })]
  return residualBlock('attention', name, options, { units: heads, axes: WITH_BIASES, coreOf })
}

/** Weights: norm.scale, norm.offset, up.kernel, up.bias, down.kernel, down.bias (norm last if it comes after). */
export function perceptronLayer(options: PerceptronLayerOptions): Layer {
  const { name, length, width, inner, activation, gain } = options
  const coreOf = (units: number) => [
    dense({ name: 'up', input: [length, width], units, activation }),
    dense({ name: 'down', input: [length, units], units: width, activation: 'none', gain })
  ]
  return residualBlock('mlp', name, options, { units: inner, axes: WITH_BIASES, coreOf })
}

/**
 * Weights: norm.scale, query.kernel, key.kernel, value.kernel, out.kernel.
 * @throws ModelError if the heads do not divide the width into even numbers, or the heads of keys those of queries
 */
export function rotaryAttentionLayer(options: ResidualBlockOptions & RotaryAttentionOptions): Layer {
  const { name, width, heads, keyHeads } = options
  if (width % (2 * heads) !== 0) {
    throw new ModelError(`layer ${name}: ${heads} heads do not divide the width ${width} into even numbers`)
  }
  if (heads % keyHeads !== 0) {
    throw new ModelError(`layer ${name}: ${keyHeads} heads of keys do not divide ${heads} heads`)
  }
  // Heads of queries stay with the head of keys that they share.
  const coreOf = (units: number) => {
    const part = { heads: (units * heads) / keyHeads, keyHeads: units, inner: (units * width) / keyHeads }
    return [rotaryAttention({ ...options, ...part, name: '' })]
  }
  const axes = ['columns', 'columns', 'columns', 'rows'] as const
  return residualBlock('rotary-attention', name, options, { units: keyHeads, axes, coreOf })
}

/** Weights: norm.scale, gate.kernel, up.kernel, down.kernel. */
export function gatedPerceptronLayer(options: ResidualBlockOptions & GatedPerceptronOptions): Layer {
  const coreOf = (units: number) => [gatedPerceptron({ ...options, name: '', inner: units })]
  const axes = ['columns', 'columns', 'rows'] as const
  return residualBlock('gated-mlp', options.name, options, { units: options.inner, axes, coreOf })
}

/** Axes of a kernel, its bias, the kernel of the output and its bias. */
const WITH_BIASES = ['columns', 'columns', 'rows', 'first'] as const

/** What is between norm, dropout and shortcut. */
interface Core extends Pick<LayerSplit, 'units' | 'axes'> {
  coreOf(units: number): readonly Layer[]
}

/**
 * Devices divide the core as in Shoeybi et al., "Megatron-LM" (2019), section 3: the first projection by columns and the second by rows, with
 * one sum of the outputs and one of the gradients with respect to its inputs. Each device executes norm, dropout and shortcut.
 */
function residualBlock(kind: string, name: string, options: ResidualBlockOptions, core: Core): Layer {
  const { units, axes, coreOf } = core
  const ofNorm = options.norm === 'before' ? Array<undefined>(options.isRms ? 1 : 2).fill(undefined) : []
  const share: LayerSplit['share'] = (count, sum) => aroundCore(kind, name, summed(coreOf(count), sum), options)
  return { ...aroundCore(kind, name, coreOf(units), options), split: { units, axes: [...ofNorm, ...axes], share } }
}

/** Layers of which the outputs of the last one, and the gradients with respect to the inputs of the first one, are sums over devices. */
function summed(layers: readonly Layer[], sum: Parameters<LayerSplit['share']>[1]): Layer[] {
  const [first, last] = [layers[0], layers.at(-1)]
  return layers.map(layer => ({
    ...layer,
    forward: (...pass) => {
      const y = layer.forward(...pass)
      return layer === last ? sum(y) : y
    },
    forwardSaving: (...pass) => {
      const { y, saved } = layer.forwardSaving(...pass)
      return { y: layer === last ? sum(y) : y, saved }
    },
    vjp: (...pass) => {
      const { dx, dWeights } = layer.vjp(...pass)
      return { dx: layer === first && dx ? sum(dx) : dx, dWeights }
    }
  }))
}

function aroundCore(kind: string, name: string, core: readonly Layer[], options: ResidualBlockOptions): Layer {
  const { input } = core[0]
  const { norm: normPosition, epsilon, hasShortcut } = options
  const norm = (options.isRms ? rmsNorm : layerNorm)({ name: 'norm', input, epsilon })
  const dropouts = options.dropout > 0 ? [dropout({ name: 'dropout', input, rate: options.dropout })] : []
  const branch = sequence({ kind, name, layers: [...(normPosition === 'before' ? [norm] : []), ...core, ...dropouts] })
  if (options.skip && (!hasShortcut || normPosition === 'after')) {
    throw new ModelError(`layer ${name} cannot be skipped: it needs a shortcut and no norm after it`)
  }
  const block = hasShortcut ? residual(branch, options.skip) : branch
  return normPosition === 'after' ? sequence({ kind, name, layers: [{ ...block, name: '' }, norm] }) : block
}

/**
 * A layer with a residual connection: y = x + f(x) (He et al., 2016).
 * @param skipRate fraction of the training steps that skip the layer (stochastic depth: Huang et al., ECCV 2016). In
 *   the other steps f is scaled by 1/(1 − skipRate), so that prediction matches the training average.
 * @throws ModelError if the layer's output shape differs from its input shape
 */
export function residual(inner: Layer, skipRate = 0): Layer {
  if (!sameShape(inner.input, inner.output)) {
    throw new ModelError(
      `layer ${inner.name} cannot have a shortcut: it maps ${formatShape(inner.input)} to ${formatShape(inner.output)}`
    )
  }
  const scaled = (y: tf.Tensor, { training }: Pass) => (training && skipRate > 0 ? tf.mul(y, 1 / (1 - skipRate)) : y)
  const addShortcut = (x: tf.Tensor, y: tf.Tensor, pass: Pass) => {
    const branch = scaled(y, pass)
    if (branch !== y) y.dispose()
    return addTo(branch, x)
  }
  return {
    ...inner,
    skipRate,
    forward: (x, weights, pass) => tf.tidy(() => addShortcut(x, inner.forward(x, weights, pass), pass)),
    forwardSaving: (x, weights, pass) =>
      tidySavedForward(() => {
        const { y, saved } = inner.forwardSaving(x, weights, pass)
        return { y: addShortcut(x, y, pass), saved }
      }),
    vjp: (x, weights, dy, pass, saved) =>
      tidyPullback(() => {
        const { dx, dWeights } = inner.vjp(x, weights, scaled(dy, pass), pass, saved)
        return { dx: addTo(dx as tf.Tensor, dy), dWeights }
      })
  }
}

/**
 * A gated perceptron at each position, SwiGLU (Shazeer, "GLU Variants Improve Transformer", 2020), as in Llama:
 * y = (silu(x·G) ∘ x·U)·D with silu(a) = a·σ(a), without biases, norm and residual connection.
 */
interface GatedPerceptronOptions {
  readonly name: string
  readonly length: number
  readonly width: number
  /** Width between the projections. */
  readonly inner: number
  /** Factor of the initial output kernel. @default 1 */
  readonly gain?: number
}

function gatedPerceptron({ name, length, width, inner, gain }: GatedPerceptronOptions): Layer {
  const silu = (a: tf.Tensor) => tf.tidy(() => tf.mul(a, tf.sigmoid(a)))
  /** silu(a)·u */
  const gated = (a: tf.Tensor, u: tf.Tensor) => tf.tidy(() => tf.mul(silu(a), u))
  const forwardSaving: Layer['forwardSaving'] = (x, [gate, up, down]) =>
    tidySavedForward(() => {
      const [a, u] = [project(x, gate), project(x, up)]
      const h = gated(a, u)
      return { y: consume([h], () => project(h, down)), saved: [a, u] }
    })
  return {
    kind: 'gated-perceptron',
    name,
    weights: [
      { name: 'gate.kernel', shape: [width, inner] },
      { name: 'up.kernel', shape: [width, inner] },
      { name: 'down.kernel', shape: [inner, width] }
    ],
    input: [length, width],
    output: [length, width],
    activations: [
      [length, inner],
      [length, inner]
    ],
    macs: 3 * length * width * inner,
    initialWeights(random) {
      const size = width * inner
      const block = new Float32Array(3 * size)
      for (const k of [0, 1]) glorotUniform(block.subarray(k * size, (k + 1) * size), width, inner, random)
      glorotUniform(block.subarray(2 * size), inner, width, random, gain)
      return block
    },
    forward(x, weights, pass) {
      const { y, saved } = forwardSaving(x, weights, pass)
      tf.dispose([...saved])
      return y
    },
    forwardSaving,
    vjp: (x, [gate, up, down], dy, { wanted = [] }, saved) =>
      tidyPullback(() => {
        const [a, u] = saved ?? [project(x, gate), project(x, up)]
        const h = gated(a, u)
        const dDown = kernelGradients(h, dy, wanted[2])
        h.dispose()
        const dh = projectTransposed(dy, down)
        const du = tf.tidy(() => tf.mul(dh, silu(a)))
        const da = consume([dh], () => {
          const s = tf.sigmoid(a)
          // The derivative of silu: σ·(1 + a·(1 − σ)).
          return tf.mul(tf.mul(dh, u), tf.mul(s, tf.add(tf.mul(a, tf.sub(1, s)), 1)))
        })
        const dWeights = [...kernelGradients(x, da, wanted[0]), ...kernelGradients(x, du, wanted[1]), ...dDown]
        const fromGate = consume([da], () => projectTransposed(da, gate))
        const fromUp = consume([du], () => projectTransposed(du, up))
        const dx = addTo(fromGate, fromUp)
        fromUp.dispose()
        return { dx, dWeights }
      })
  }
}
