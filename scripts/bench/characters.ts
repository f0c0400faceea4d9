/**
 * A small network that predicts the next character of a text, in plain loops, for long runs in the simulator: the weights of the
 * characters before are added up, and two layers with ReLU and a softmax follow.
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { Random } from '../../src/data/random.js'
import type { Blocks, Examples, Learner } from '../../src/learning/index.js'

/** Characters that the network sees. */
const BEFORE = 12
/** The last of each ten pieces of a text is held out. */
const PIECE = 1000
const HELD_OUT_ROWS = 4000

interface Layer {
  readonly rows: number
  readonly columns: number
  readonly outputs: Float32Array
  readonly errors: Float32Array
}

export interface SimulatedTask {
  readonly learner: Learner
  /** Draws rows of a batch, in arrays that the next call overwrites. */
  inputs(rows: number, seed: number): () => Examples
  /** Mean loss of held-out rows. */
  loss(parameters: Blocks): number
}

/** @param path of a compressed text @param hidden units of the hidden layers */
export function characterTask(path: string, hidden: readonly number[]): SimulatedTask {
  const bytes = gunzipSync(readFileSync(path))
  const alphabet = [...new Set(bytes)].sort((a, b) => a - b)
  const text = Uint8Array.from(bytes, byte => alphabet.indexOf(byte))
  const classes = alphabet.length
  const sizes = [BEFORE * classes, ...hidden, classes]
  const layers = sizes.slice(1).map((columns, l): Layer => {
    return { rows: sizes[l], columns, outputs: new Float32Array(columns), errors: new Float32Array(columns) }
  })
  const learner = learnerOf(layers)
  const draw = (random: Random, isHeldOut: boolean): number => {
    for (;;) {
      const at = BEFORE + random.below(text.length - BEFORE)
      if ((Math.floor(at / PIECE) % 10 === 9) === isHeldOut) return at
    }
  }
  const inputs = (rows: number, seed: number, isHeldOut = false) => {
    const random = new Random(seed)
    const examples = {
      size: rows,
      labels: new Float32Array(rows),
      offsets: Int32Array.from({ length: rows + 1 }, (_, row) => row * BEFORE),
      indices: new Int32Array(rows * BEFORE),
      values: new Float32Array(rows * BEFORE).fill(1)
    }
    return () => {
      for (let row = 0; row < rows; row++) {
        const at = draw(random, isHeldOut)
        for (let j = 0; j < BEFORE; j++) examples.indices[row * BEFORE + j] = j * classes + text[at - 1 - j]
        examples.labels[row] = text[at]
      }
      return examples
    }
  }
  return {
    learner,
    inputs,
    loss(parameters) {
      const score = { loss: 0, hits: 0 }
      learner.score(parameters, inputs(HELD_OUT_ROWS, 7, true)(), 0, HELD_OUT_ROWS, score)
      return score.loss / HELD_OUT_ROWS
    }
  }
}

/** A layer is a block: its weights, input by input, then its biases. */
function learnerOf(layers: readonly Layer[]): Learner {
  const last = layers[layers.length - 1]
  const forward = (parameters: Blocks, { indices }: Examples, row: number) => {
    for (const [l, { rows, columns, outputs }] of layers.entries()) {
      const weights = parameters[l]
      outputs.set(weights.subarray(rows * columns))
      const addRow = (input: number, value: number) => {
        const from = input * columns
        for (let c = 0; c < columns; c++) outputs[c] += value * weights[from + c]
      }
      if (l === 0) for (let j = 0; j < BEFORE; j++) addRow(indices[row * BEFORE + j], 1)
      else for (let i = 0, before = layers[l - 1].outputs; i < rows; i++) if (before[i] > 0) addRow(i, before[i])
      if (l < layers.length - 1) for (let c = 0; c < columns; c++) outputs[c] = Math.max(0, outputs[c])
    }
  }
  /** @returns the loss; `errors` of the last layer become its gradient */
  const lossOf = (label: number): number => {
    const { outputs, errors } = last
    const top = outputs.reduce((most, output) => Math.max(most, output))
    let sum = 0
    for (let c = 0; c < outputs.length; c++) sum += errors[c] = Math.exp(outputs[c] - top)
    for (let c = 0; c < outputs.length; c++) errors[c] = errors[c] / sum - (c === label ? 1 : 0)
    return Math.log(sum) - (outputs[label] - top)
  }
  const backward = (parameters: Blocks, { indices }: Examples, row: number, sums: Blocks) => {
    for (let l = layers.length - 1; l >= 0; l--) {
      const { rows, columns, errors } = layers[l]
      const [weights, sum] = [parameters[l], sums[l]]
      for (let c = 0; c < columns; c++) sum[rows * columns + c] += errors[c]
      if (l === 0) {
        for (let j = 0; j < BEFORE; j++) {
          const from = indices[row * BEFORE + j] * columns
          for (let c = 0; c < columns; c++) sum[from + c] += errors[c]
        }
        continue
      }
      const { outputs, errors: before } = layers[l - 1]
      for (let i = 0; i < rows; i++) {
        before[i] = 0
        if (outputs[i] <= 0) continue
        const from = i * columns
        let error = 0
        for (let c = 0; c < columns; c++) {
          error += weights[from + c] * errors[c]
          sum[from + c] += outputs[i] * errors[c]
        }
        before[i] = error
      }
    }
  }
  return {
    layout: {
      blocks: layers.map(({ rows, columns }, l) => ({ name: `layer${l}`, length: (rows + 1) * columns }))
    },
    classifies: true,
    initial() {
      const random = new Random(5)
      return layers.map(({ rows, columns }, l) => {
        const scale = Math.sqrt(2 / (l === 0 ? BEFORE : rows))
        return Float32Array.from({ length: (rows + 1) * columns }, (_, i) =>
          i < rows * columns ? scale * random.normal() : 0
        )
      })
    },
    score(parameters, examples, from, to, into) {
      for (let row = from; row < to; row++) {
        forward(parameters, examples, row)
        into.loss += lossOf(examples.labels[row])
      }
    },
    addGradient(parameters, examples, from, to, sum) {
      for (let row = from; row < to; row++) {
        forward(parameters, examples, row)
        lossOf(examples.labels[row])
        backward(parameters, examples, row, sum)
      }
    },
    predict: () => {
      throw new Error('the benchmark does not predict')
    }
  }
}
