/** A plug-in. The learner thread imports this file as well, and peers compare its digest. */
import { readFile } from 'node:fs/promises'

/** Huber loss: quadratic near the label and linear far from it, so that outliers have bounded gradients. */
const huber = {
  classifies: false,
  value: (score, label) => {
    const distance = Math.abs(score - label)
    return distance <= 1 ? 0.5 * distance * distance : distance - 0.5
  },
  slope: (score, label) => Math.max(-1, Math.min(1, score - label))
}

/** Decreasing steps by the sign of the gradient. Uses + − × ÷ and √ only, so every machine computes the same bits. */
const sign = ({ step = 0.5 }) => ({
  step: ({ parameters, state }, sum, _count, updates) => ({
    parameters: parameters.map((block, k) =>
      block.map((weight, i) => weight - (step / Math.sqrt(updates + 1)) * Math.sign(sum[k][i]))
    ),
    state
  })
})

/** Elementwise product x·w with one weight for each number. */
const scale = ({ start = 1 }, { input, tf }) => ({
  weights: [{ name: 'scale', shape: [...input] }],
  initial: () => new Float32Array(input.reduce((product, axis) => product * axis, 1)).fill(start),
  forward: (x, [w]) => tf.mul(x, w),
  vjp: (x, [w], dy) => ({ dx: tf.mul(dy, w), dWeights: [tf.sum(tf.mul(dy, x), 0)] })
})

/** Reads lines of the form `23.5 <- 1.0 0.7`: label, then features. */
const measurements = async file => {
  const lines = (await readFile(file, 'utf8')).split('\n').filter(line => line.includes('<-'))
  const inputs = lines.map(line => {
    const [label, features] = line.split('<-')
    return { label: Number(label), features: features.trim().split(' ').map(Number) }
  })
  return { dimension: inputs[0]?.features.length, read: () => inputs }
}

export const plugin = { losses: { huber }, rules: { sign }, layers: { scale }, readers: { measurements } }
