/** The speed of learning without reading, on rows like those of a9a (14 of 123 binary features and a constant). */
import { SerialTrainer } from '../../src/learner/serial.js'
import type { Examples } from '../../src/learner/types.js'
import type { Row } from './row.js'

const ROWS = 32_768
const FEATURES = 14
const DIMENSION = 124
const PASSES = 30
const WARM_UP_PASSES = 3

/** Binary rows with ascending features from a linear congruential generator with a fixed seed, and labels from a planted model. */
function syntheticRows(): Examples {
  let state = 1
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  const planted = Float64Array.from({ length: DIMENSION }, () => 2 * random() - 1.3)
  const width = FEATURES + 1
  const labels = new Float32Array(ROWS)
  const indices = new Int32Array(ROWS * width)
  const stride = Math.floor((DIMENSION - 1) / FEATURES)
  for (let row = 0; row < ROWS; row++) {
    let score = 0
    for (let f = 0; f < FEATURES; f++) {
      const feature = f * stride + Math.floor(stride * random() * random())
      indices[row * width + f] = feature
      score += planted[feature]
    }
    indices[row * width + FEATURES] = DIMENSION - 1
    labels[row] = random() < 1 / (1 + Math.exp(-score)) ? 1 : 0
  }
  const offsets = Int32Array.from({ length: ROWS + 1 }, (_, row) => row * width)
  return { size: ROWS, labels, offsets, indices, values: new Float32Array(ROWS * width).fill(1) }
}

/** One case per training engine, timed over all passes. */
export function* bench(): Generator<Row> {
  const rows = syntheticRows()
  for (const batch of [1, 512]) {
    const trainer = new SerialTrainer({ model: 'logistic', batch })
    for (let pass = 0; pass < WARM_UP_PASSES; pass++) trainer.learn(rows)
    const start = performance.now()
    for (let pass = 0; pass < PASSES; pass++) trainer.learn(rows)
    const seconds = (performance.now() - start) / 1000
    yield { name: `learning alone, logistic, b = ${batch}`, value: (PASSES * ROWS) / seconds, unit: 'inputs/s' }
  }
}
