/** Streams: label noise, drift and recorded files. */
import assert from 'node:assert/strict'
import { Random } from '../../../sim/engine/random.js'
import { parseScenario, type RecordedStream, ScenarioError, simulate } from '../../../sim/index.js'
import { createInputs, Target } from '../../../sim/streams/create.js'
import type { Inputs } from '../../../sim/streams/inputs.js'

const RECORDED: RecordedStream = {
  model: 'softmax',
  classes: 4,
  dimension: 3,
  examples: {
    size: 3,
    labels: Float32Array.of(0, 3, 2),
    offsets: Int32Array.of(0, 1, 1, 3),
    indices: Int32Array.of(2, 0, 1),
    values: Float32Array.of(5, 6, 7)
  }
}

const scenario = (values: object) => parseScenario({ dimension: 5, inputs: 1000, ...values }, 'test')
const inputsOf = (values: object, recorded?: RecordedStream) =>
  createInputs(scenario(values), new Random(3, 'stream'), recorded)

/** Label and features of the next inputs. */
function take(inputs: Inputs, count: number): { label: number; features: [index: number, value: number][] }[] {
  return Array.from({ length: count }, () => {
    const { labels, offsets, indices, values } = inputs.next()
    assert.equal(offsets[0], 0)
    const features = Array.from({ length: offsets[1] }, (_, i): [number, number] => [indices[i], values[i]])
    return { label: labels[0], features }
  })
}

describe('label noise', () => {
  it('replaces the requested share of classes, and nothing else', () => {
    for (const stream of ['logistic', 'sparse']) {
      const clean = take(inputsOf({ stream }), 4000)
      const noisy = take(inputsOf({ stream, labelNoise: 0.2 }), 4000)
      assert.deepEqual(
        noisy.map(({ features }) => features),
        clean.map(({ features }) => features)
      )
      const flipped = noisy.filter(({ label }, i) => label !== clean[i].label).length / 4000
      assert.ok(Math.abs(flipped - 0.2) < 0.03, `${flipped}`)
      assert.ok(noisy.every(({ label }) => label === 0 || label === 1))
    }
  })

  it('replaces a class by each of the others, never by itself', () => {
    const noisy = take(inputsOf({ stream: 'file', data: 'x', labelNoise: 1 }, RECORDED), 3000)
    const seen = RECORDED.examples.labels.map((_, row) => {
      const labels = new Set(noisy.filter((_, i) => i % 3 === row).map(({ label }) => label))
      assert.ok(!labels.has(RECORDED.examples.labels[row]))
      return labels.size
    })
    assert.deepEqual([...seen], [3, 3, 3])
    assert.deepEqual([...RECORDED.examples.labels], [0, 3, 2], 'the recorded stream is unchanged')
  })

  it('makes the optimum unknown', () => {
    assert.notEqual(inputsOf({}).optimum, undefined)
    assert.equal(inputsOf({ labelNoise: 0.1 }).optimum, undefined)
  })
})

describe('drift', () => {
  const target = (drift: number, dimension: number, seed: number) =>
    new Target({ dimension, drift, inputs: 400 }, new Random(seed))
  const weights = (of: Target, dimension: number) => Array.from({ length: dimension }, (_, i) => of.weight(i))

  it('of zero leaves w* constant', () => {
    const still = target(0, 4, 1)
    const start = weights(still, 4)
    for (let input = 0; input < 10; input++) still.advance()
    assert.deepEqual(weights(still, 4), start)
    assert.ok(!still.rotates)
  })

  it('draws the same features, and increasingly different labels', () => {
    const [fixed, drifting] = [0, 0.5].map(drift => take(inputsOf({ drift }), 1000))
    assert.deepEqual(
      drifting.map(({ features }) => features),
      fixed.map(({ features }) => features)
    )
    const differences = (from: number) =>
      drifting.slice(from, from + 200).filter(({ label }, i) => label !== fixed[from + i].label).length
    assert.ok(differences(0) < 20 && differences(800) > 60, `${differences(0)}, ${differences(800)}`)
  })
})

describe('a recorded stream', () => {
  it('is replayed in order, and from the start again', () => {
    const rows = [
      { label: 0, features: [[2, 5]] },
      { label: 3, features: [] },
      {
        label: 2,
        features: [
          [0, 6],
          [1, 7]
        ]
      }
    ]
    assert.deepEqual(take(inputsOf({ stream: 'file', data: 'x' }, RECORDED), 7), [...rows, ...rows, rows[0]])
  })

  it('must be passed to the run', () => {
    assert.throws(() => simulate(scenario({ stream: 'file', data: 'x' })), /stream file: no data/)
  })
})

describe('an invalid stream', () => {
  it('is rejected with an error that names the key', () => {
    const wrong: [values: object, line: RegExp][] = [
      [{ stream: 'file' }, /my\.yaml: data: .*set data=FILE/],
      [{ data: 'x.svm' }, /my\.yaml: data: .*only valid for stream file, not for logistic/],
      [{ stream: 'sparse', hashBits: 3 }, /hashBits: /],
      [{ stream: 'least-squares', labelNoise: 0.1 }, /labelNoise: /],
      [{ stream: 'file', data: 'x', model: 'linear', labelNoise: 0.1 }, /labelNoise: /],
      [{ stream: 'file', data: 'x', drift: 1 }, /drift: /],
      [{ dimension: 1, drift: 1 }, /drift: /],
      [{ labelNoise: 2 }, /labelNoise: .*\(given: 2\)/]
    ]
    for (const [values, line] of wrong) assert.throws(() => parseScenario(values, 'my.yaml'), line)
    assert.throws(() => simulate(scenario({ labelNoise: 0.1, inputs: 1e9 })), ScenarioError)
    assert.throws(() => simulate(scenario({ labelNoise: 0.1, inputs: 1e9 })), /inputs: .*set at most \d+/)
  })
})
