/**
 * Reversible transformer blocks (Gomez et al., "The Reversible Residual Network: Backpropagation Without Storing Activations", NeurIPS
 * 2017, equations 6 to 8; for transformers as in Kitaev et al., "Reformer", ICLR 2020). The two halves of each vector are changed in
 * turns, so the input of a block follows from its output, and the backward pass holds the activations of one branch at a time.
 *
 * Inputs that are computed from outputs differ from the first ones by rounding: by some 1e-7 of the largest number for each branch.
 */
import * as tf from '#tfjs'
import { addTo, consume, tidyPullback } from '../ops.js'
import { forkSeed } from '../random.js'
import type { Activation } from '../spec/layer-kinds.js'
import { type Layer, type LayerCache, ModelError, type Pass, totalSize } from '../types.js'
import { attentionLayer, perceptronLayer } from './block.js'
import { slicer } from './wrappers.js'

interface ReversibleOptions {
  readonly name: string
  readonly length: number
  readonly width: number
  /** Number of blocks of attention and perceptron. */
  readonly layers: number
  /** Number of heads of the attention, whose width is a half. */
  readonly heads: number
  readonly isCausal: boolean
  readonly mask?: 'padding'
  /** Width between the projections of a perceptron. */
  readonly inner: number
  readonly activation: Activation
  readonly epsilon?: number
  readonly dropout: number
  readonly gain?: number
}

/**
 * Blocks of an attention and a perceptron with norms before, each of which maps a half to an addition to the other half.
 * @throws ModelError if halves of the width do not fit
 */
export function reversibleLayer({ name, layers, ...options }: ReversibleOptions): Layer {
  const { length, width } = options
  if (width % 2 !== 0) throw new ModelError(`layer ${name}: it halves the width ${width}, which must be even`)
  const common = { ...options, width: width / 2, norm: 'before', hasShortcut: false } as const
  const branches = Array.from({ length: layers }, (_, i) => [
    attentionLayer({ ...common, name: `${name}.${i}.attention` }),
    perceptronLayer({ ...common, name: `${name}.${i}.mlp` })
  ]).flat()
  return coupled(name, [length, width], branches)
}

type Halves = readonly [tf.Tensor, tf.Tensor]

/** @param branches an even number of maps of a half: each replaces the halves a and b by b and a + f(b) */
function coupled(name: string, input: readonly number[], branches: readonly Layer[]): Layer {
  const weightsAt = slicer(branches.map(({ weights }) => weights.length))
  const cacheOf = (cache: LayerCache, i: number): LayerCache => {
    cache.parts ??= branches.map(() => ({ position: 0 }))
    cache.parts[i].position = cache.position
    return cache.parts[i]
  }
  const passOf = ({ seed, wanted, cache, ...pass }: Pass, i: number): Pass => ({
    ...pass,
    seed: forkSeed(seed, i),
    wanted: wanted && weightsAt(wanted, i),
    cache: cache && cacheOf(cache, i)
  })
  const outputs = (x: tf.Tensor, weights: readonly tf.Tensor[], pass: Pass): Halves =>
    branches.reduce<Halves>(([a, b], branch, i) => {
      const next = addTo(branch.forward(b, weightsAt(weights, i), passOf(pass, i)), a)
      a.dispose()
      return [b, next]
    }, halvesOf(x))
  const forward: Layer['forward'] = (x, weights, pass) =>
    tf.tidy(() => {
      const halves = outputs(x, weights, pass)
      return consume([...halves], () => tf.concat([...halves], 2))
    })
  return {
    kind: 'reversible',
    name,
    weights: branches.flatMap(({ name: branch, weights }) =>
      weights.map(weight => ({ ...weight, name: `${branch.slice(name.length + 1)}.${weight.name}` }))
    ),
    input,
    output: input,
    activations: [],
    macs: branches.reduce((sum, { macs }) => sum + macs, 0),
    initialWeights(random) {
      const block = new Float32Array(branches.reduce((sum, { weights }) => sum + totalSize(weights), 0))
      let at = 0
      for (const branch of branches) {
        const part = branch.initialWeights(random)
        block.set(part, at)
        at += part.length
      }
      return block
    },
    forward,
    forwardSaving: (x, weights, pass) => ({ y: forward(x, weights, pass), saved: [] }),
    vjp: (x, weights, dy, pass) =>
      tidyPullback(() => {
        let [p, q] = outputs(x, weights, pass)
        let [dp, dq] = halvesOf(dy)
        const dWeights: tf.Tensor[] = []
        for (let i = branches.length - 1; i >= 0; i--) {
          const [own, inner] = [weightsAt(weights, i), passOf(pass, i)]
          const { y, saved } = branches[i].forwardSaving(p, own, inner)
          const before = consume([y, q], () => tf.sub(q, y))
          const gradients = branches[i].vjp(p, own, dq, inner, saved)
          tf.dispose([...saved])
          dWeights.unshift(...gradients.dWeights)
          // The halves before the branch are q − f(p) and p.
          const dInner = addTo(gradients.dx as tf.Tensor, dp)
          dp.dispose()
          ;[p, q] = [before, p]
          ;[dp, dq] = [dq, dInner]
        }
        tf.dispose([p, q])
        return { dx: consume([dp, dq], () => tf.concat([dp, dq], 2)), dWeights }
      })
  }
}

/** The halves of the last axis, in memory of their own. */
function halvesOf(x: tf.Tensor): Halves {
  const [batch, length, width] = x.shape as number[]
  const half = (from: number) => tf.slice(x, [0, 0, from], [batch, length, width / 2])
  return [half(0), half(width / 2)]
}
