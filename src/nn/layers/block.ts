/**
 * The two halves of a transformer block as layers of their own, which keeps the insides of each small: attention and a
 * two-layer perceptron, each with layer norm, dropout and shortcut. Norm before: y = x + drop(f(norm(x))), as in GPT-2; after:
 * y = norm(x + drop(f(x))), as in BERT.
 */
import { ModelError } from '../errors.js'
import type { Activation } from '../spec/model-spec.js'
import type { Layer } from '../types.js'
import { type AttentionOptions, attention } from './attention.js'
import { dense } from './dense.js'
import { dropout } from './dropout.js'
import { layerNorm } from './layer-norm.js'
import { residual } from './residual.js'
import { sequence } from './sequence.js'

export interface ResidualBlockOptions {
  readonly norm: 'before' | 'after' | 'none'
  /** ε of the norm. Default 1e-5. */
  readonly epsilon?: number
  readonly hasShortcut: boolean
  /** Share of the output that is dropped in training; 0 for none. */
  readonly dropout: number
  /** Share of the training steps that leave the layer out; needs the shortcut, and the norm not after it. Default 0. */
  readonly skip?: number
}

export interface AttentionLayerOptions extends ResidualBlockOptions, AttentionOptions {}

export interface PerceptronLayerOptions extends ResidualBlockOptions {
  readonly name: string
  readonly length: number
  readonly width: number
  /** Width between the two projections. */
  readonly inner: number
  readonly activation: Activation
  readonly gain?: number
}

/** Weights: norm.scale, norm.offset, qkv.kernel, qkv.bias, out.kernel, out.bias (norm last if it comes after). */
export function attentionLayer(options: AttentionLayerOptions): Layer {
  return residualBlock('attention', options.name, [attention({ ...options, name: '' })], options)
}

/** Weights: norm.scale, norm.offset, up.kernel, up.bias, down.kernel, down.bias (norm last if it comes after). */
export function perceptronLayer(options: PerceptronLayerOptions): Layer {
  const { name, length, width, inner, activation, gain } = options
  const up = dense({ name: 'up', input: [length, width], units: inner, activation })
  const down = dense({ name: 'down', input: [length, inner], units: width, activation: 'none', gain })
  return residualBlock('mlp', name, [up, down], options)
}

function residualBlock(kind: string, name: string, core: readonly Layer[], options: ResidualBlockOptions): Layer {
  const { input } = core[0]
  const { norm: place, epsilon, hasShortcut } = options
  const norm = layerNorm({ name: 'norm', input, epsilon })
  const drops = options.dropout > 0 ? [dropout({ name: 'dropout', input, rate: options.dropout })] : []
  const inside = sequence({ kind, name, layers: [...(place === 'before' ? [norm] : []), ...core, ...drops] })
  if (options.skip && (!hasShortcut || place === 'after')) {
    throw new ModelError(`layer ${name} cannot be skipped: give it a shortcut, and no norm after it`)
  }
  const whole = hasShortcut ? residual(inside, options.skip) : inside
  return place === 'after' ? sequence({ kind, name, layers: [{ ...whole, name: '' }, norm] }) : whole
}
