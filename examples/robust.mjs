/** A plug-in: what `custom-parts.mjs` learns with. The learner's thread imports this file too, and peers compare its digest. */
import { readFile } from 'node:fs/promises'

/** Huber's loss: a square near the label, a line far from it, so that wild labels pull no harder than any other. */
const huber = {
  classifies: false,
  value: (score, label) => {
    const distance = Math.abs(score - label)
    return distance <= 1 ? 0.5 * distance * distance : distance - 0.5
  },
  slope: (score, label) => Math.max(-1, Math.min(1, score - label))
}

/** The mean gradient's sign, in steps that shrink: + − × ÷ and √ only, so that every machine gets the same bits. */
const sign = ({ step = 0.5 }) => ({
  step: ({ parameters, state }, sum, _count, updates) => ({
    parameters: parameters.map((block, k) =>
      block.map((weight, i) => weight - (step / Math.sqrt(updates + 1)) * Math.sign(sum[k][i]))
    ),
    state
  })
})

/** x · w, a weight for each number: the smallest layer that has something to learn. */
const scale = ({ start = 1 }, { input, tf }) => ({
  weights: [{ name: 'scale', shape: [...input] }],
  initial: () => new Float32Array(input.reduce((product, axis) => product * axis, 1)).fill(start),
  forward: (x, [w]) => tf.mul(x, w),
  vjp: (x, [w], dy) => ({ dx: tf.mul(dy, w), dWeights: [tf.sum(tf.mul(dy, x), 0)] })
})

/** A file of measurements: `23.5 <- 1.0 0.7` a line. */
const measurements = async file => {
  const lines = (await readFile(file, 'utf8')).split('\n').filter(line => line.includes('<-'))
  const inputs = lines.map(line => {
    const [label, features] = line.split('<-')
    return { label: Number(label), features: features.trim().split(' ').map(Number) }
  })
  return { dimension: inputs[0]?.features.length, read: () => inputs }
}

export const plugin = { losses: { huber }, rules: { sign }, layers: { scale }, readers: { measurements } }
