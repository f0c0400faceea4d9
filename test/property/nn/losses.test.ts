/** The heads' losses and gradients on every backend, compared with plain arithmetic. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { softmaxHead, squaredHead } from '../../../src/nn/losses.js'
import type { Head } from '../../../src/nn/types.js'
import { BACKENDS, difference, numbersOf, useBackend } from '../../support/l2l/layers.js'

/** TensorFlow flushes subnormal numbers to 0, which creates ties. */
const score = fc.float({ min: -20, max: 20, noNaN: true }).map(v => (Math.abs(v) < 2 ** -126 ? 0 : v))

/** Rows of scores with their classes. */
const scoredRows = fc
  .record({ classes: fc.integer({ min: 2, max: 5 }), samples: fc.integer({ min: 1, max: 4 }) })
  .chain(({ classes, samples }) =>
    fc.record({
      rows: fc.array(fc.array(score, { minLength: classes, maxLength: classes }), {
        minLength: samples,
        maxLength: samples
      }),
      targets: fc.array(fc.nat(classes - 1), { minLength: samples, maxLength: samples })
    })
  )

describe('heads', () => {
  for (const backend of BACKENDS) {
    describe(`on ${backend}`, () => {
      before(() => useBackend(backend))

      it('softmax: loss, hits and gradient follow the definition', () =>
        fc.assert(
          fc.property(scoredRows, ({ rows, targets }) => {
            const head = softmaxHead([rows[0].length])
            const expected = rows.map((row, i) => entropyOf(row, targets[i]))
            const { loss, hits, dx } = run(head, [rows.length, rows[0].length], rows.flat(), targets)
            close(loss, sumOf(expected.map(({ loss }) => loss)))
            assert.equal(hits, sumOf(rows.map((row, i) => (row.indexOf(Math.max(...row)) === targets[i] ? 1 : 0))))
            expected
              .flatMap(({ slopes }) => slopes)
              .forEach((slope, i) => {
                close(dx[i], slope)
              })
          }),
          { numRuns: 50 }
        ))

      it('softmax over a sequence: mean over positions', () =>
        fc.assert(
          fc.property(scoredRows, ({ rows, targets }) => {
            const length = rows.length
            const single = run(softmaxHead([rows[0].length]), [length, rows[0].length], rows.flat(), targets)
            const head = softmaxHead([length, rows[0].length])
            const whole = run(head, [1, length, rows[0].length], rows.flat(), targets, [1, length])
            close(whole.loss, single.loss / length)
            close(whole.hits ?? Number.NaN, (single.hits ?? Number.NaN) / length)
            assert.ok(difference([whole.dx], [single.dx.map(v => v / length)]) < 1e-5)
          }),
          { numRuns: 20 }
        ))

      it('squared: half the square, with the difference as gradient', () =>
        fc.assert(
          fc.property(fc.array(fc.tuple(score, score), { minLength: 1, maxLength: 5 }), pairs => {
            const shape = [pairs.length, 1]
            const x = pairs.map(([prediction]) => prediction)
            const targets = pairs.map(([, target]) => target)
            const { loss, hits, dx } = run(squaredHead(), shape, x, targets)
            close(loss, sumOf(pairs.map(([a, b]) => (a - b) ** 2 / 2)))
            assert.equal(hits, undefined)
            assert.ok(difference([dx], [Float32Array.from(pairs, ([a, b]) => a - b)]) < 1e-5)
          }),
          { numRuns: 20 }
        ))

      it('squared, of a standardised target: losses and predictions in its units, the gradient without unit', () =>
        fc.assert(
          fc.property(fc.array(fc.tuple(score, score), { minLength: 1, maxLength: 5 }), pairs => {
            const [mean, deviation] = [30, 8]
            const x = pairs.map(([output]) => output)
            const targets = pairs.map(([, target]) => mean + deviation * target)
            const head = squaredHead({ mean, deviation })
            const { loss, dx } = run(head, [pairs.length, 1], x, targets, [pairs.length], v => mean + deviation * v)
            const expected = sumOf(pairs.map(([a, b]) => (deviation * (a - b)) ** 2 / 2))
            assert.ok(Math.abs(loss - expected) <= 1e-3 * Math.max(1, expected), `${loss}, ${expected}`)
            // The target was rounded to float32.
            for (const [i, [a, b]] of pairs.entries()) assert.ok(Math.abs(dx[i] - (a - b)) < 1e-4)
          }),
          { numRuns: 20 }
        ))
    })
  }
})

function entropyOf(row: readonly number[], target: number): { loss: number; slopes: number[] } {
  const most = Math.max(...row)
  const total = sumOf(row.map(v => Math.exp(v - most)))
  const slopes = row.map((v, i) => Math.exp(v - most) / total - (i === target ? 1 : 0))
  return { loss: Math.log(total) + most - row[target], slopes }
}

/** Loss with gradient. Checks that the loss alone is the same and that nothing stays on the device. */
function run(
  head: Head,
  shape: number[],
  x: number[],
  targets: number[],
  targetShape = [targets.length],
  predictionOf = (output: number) => output
) {
  const before = tf.memory().numTensors
  const input = tf.tensor(x, shape)
  const labels = tf.tensor(targets, targetShape, head.classifies ? 'int32' : 'float32')
  const alone = head.score(input, labels)
  const result = head.lossAndGradient(input, labels)
  const predicted = head.predict(input)
  const plain = {
    loss: numbersOf(result.loss)[0],
    hits: result.hits === undefined ? undefined : numbersOf(result.hits)[0],
    dx: numbersOf(result.dx)
  }
  assert.deepEqual(result.dx.shape, shape)
  assert.equal(numbersOf(alone.loss)[0], plain.loss)
  const total = sumOf([...numbersOf(predicted)])
  close(total, head.classifies ? targets.length : sumOf(x.map(predictionOf)))
  tf.dispose([input, labels, predicted, alone.loss, alone.hits ?? [], result.loss, result.hits ?? [], result.dx])
  assert.equal(tf.memory().numTensors, before)
  return plain
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, v) => sum + v, 0)
}

function close(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) <= 1e-4 * Math.max(1, Math.abs(expected)), `${actual}, not ${expected}`)
}
