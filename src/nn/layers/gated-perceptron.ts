/**
 * A gated perceptron at each position, SwiGLU (Shazeer, "GLU Variants Improve Transformer", 2020), as in Llama:
 * y = (silu(x·G) ∘ x·U)·D with silu(a) = a·σ(a), without biases, norm and residual connection.
 */
import * as tf from '#tfjs'
import { kernelGradients, project, projectTransposed } from '../matmul.js'
import { addTo, consume, tidyPullback, tidySavedForward } from '../ops.js'
import { glorotUniform } from '../random.js'
import type { Layer } from '../types.js'

export interface GatedPerceptronOptions {
  readonly name: string
  readonly length: number
  readonly width: number
  /** Width between the projections. */
  readonly inner: number
  /** Factor of the initial output kernel. @default 1 */
  readonly gain?: number
}

export function gatedPerceptron({ name, length, width, inner, gain }: GatedPerceptronOptions): Layer {
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
