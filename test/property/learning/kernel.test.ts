/** The WebAssembly loops of the built-in losses have the same bits in every cell as the loop in TypeScript, whatever the rows are. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SparseKernel } from '../../../src/learning/engines/sparse-kernel.js'
import { SparseScalarEngine } from '../../../src/learning/engines/sparse-scalar.js'
import { type AveragingSpec, createAveraging, type Examples, type PredictWith } from '../../../src/learning/index.js'
import { type ScalarLoss, scalarLosses, standardised, type TargetScale } from '../../../src/learning/models/losses.js'

class OpenEngine extends SparseScalarEngine {
  get bits() {
    const { agreement, cells, progress, retention, updates } = this
    const { outcomes, ...sums } = progress
    const last = updates > 0 ? outcomes?.last : undefined
    // The sign of a lag of 0 has no effect.
    const numbers = cells.map(number => number + 0)
    return { agreement, cells: numbers, last, metrics: outcomes?.metrics(1), retention, sums, updates }
  }
}

const targetScale: TargetScale = { mean: 190.5, deviation: 77 }
const LOSSES: Readonly<Record<string, { loss: ScalarLoss; targetScale?: TargetScale }>> = {
  logistic: { loss: scalarLosses.logistic },
  hinge: { loss: scalarLosses.hinge },
  squared: { loss: scalarLosses.linear },
  'standardised squared': { loss: standardised(targetScale), targetScale }
}

interface Options {
  readonly name: string
  readonly averaging: AveragingSpec
  readonly predictWith: PredictWith
  readonly step: number
  readonly growth: number
  readonly forget: number | undefined
  readonly maxForget: number
}

function engineFor({ name, averaging: spec, predictWith, ...steps }: Options, hasKernel: boolean): OpenEngine {
  const averaging = createAveraging(spec)
  const adagrad = { initial: 0.01, ...steps } as ConstructorParameters<typeof SparseScalarEngine>[0]['adagrad']
  const isFollowing = spec.name === 'tail'
  const common = { ...steps, initial: 0.01, forget: steps.forget ?? 0, isFollowing }
  const { loss, targetScale } = LOSSES[name]
  const options = { ...common, servesAverage: predictWith === 'average', targetScale }
  const kernel = hasKernel ? new SparseKernel(loss, options) : undefined
  const room = { dimension: undefined, dimensionLimit: 1 << 20 }
  return new OpenEngine({ ...room, adagrad, averaging, predictWith }, loss, loss.classifies ? 2 : 0, kernel)
}

const plain = fc.uniqueArray(fc.nat(300), { maxLength: 12 }).map(features => features.sort((a, b) => a - b))
const feature = fc.oneof(
  { weight: 20, arbitrary: fc.nat(300) },
  { weight: 1, arbitrary: fc.integer({ min: 1000, max: 9000 }) }
)
const value = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(1, -1, 0.25) },
  { weight: 4, arbitrary: fc.float({ noNaN: true, min: -8, max: 8 }) },
  { weight: 1, arbitrary: fc.constantFrom(0, -0, 3000) }
)
const row = fc.record({
  label: fc.oneof({ weight: 30, arbitrary: fc.constantFrom(0, 1) }, { weight: 1, arbitrary: fc.constant(Number.NaN) }),
  features: fc.oneof(
    { weight: 6, arbitrary: plain },
    { weight: 4, arbitrary: fc.uniqueArray(fc.nat(300), { maxLength: 9 }) },
    { weight: 2, arbitrary: fc.array(fc.nat(9), { maxLength: 9 }) },
    { weight: 1, arbitrary: fc.array(feature, { maxLength: 6 }) }
  ),
  values: fc.infiniteStream(value)
})

function examplesOf(rows: readonly { label: number; features: number[]; values: Iterable<number> }[]): Examples {
  const values = rows.flatMap(({ features, values }) => {
    const numbers = values[Symbol.iterator]()
    return features.map(() => numbers.next().value as number)
  })
  const offsets = [0]
  for (const { features } of rows) offsets.push((offsets.at(-1) as number) + features.length)
  return {
    size: rows.length,
    labels: Float32Array.from(rows.map(({ label }) => label)),
    offsets: Int32Array.from(offsets),
    indices: Int32Array.from(rows.flatMap(({ features }) => features)),
    values: Float32Array.from(values)
  }
}

/** Rows that are not plain divide the sums of logarithms differently, so that the last bits of the loss differ. */
function assertEqual(one: OpenEngine['bits'], other: OpenEngine['bits']): void {
  assert.ok(Math.abs(one.sums.loss - other.sums.loss) <= 1e-12 * other.sums.loss)
  const loss = 0
  assert.deepEqual({ ...one, sums: { ...one.sums, loss } }, { ...other, sums: { ...other.sums, loss } })
}

const options = fc.record({
  name: fc.constantFrom(...Object.keys(LOSSES)),
  averaging: fc.constantFrom<AveragingSpec>(
    { name: 'tail' },
    { name: 'uniform' },
    { name: 'exponential', halfLife: 3 }
  ),
  predictWith: fc.constantFrom<PredictWith>('average', 'current'),
  step: fc.constantFrom(0.2, 3),
  growth: fc.constantFrom(0, 0.5),
  forget: fc.constantFrom(undefined, 0.01),
  maxForget: fc.constantFrom(0.05, 0.9)
})

describe('the kernels of linear models', () => {
  it('has the bits of the loop in TypeScript, for plain rows and others, in blocks of any size', () => {
    let learnedInKernel = 0
    fc.assert(
      fc.property(
        options,
        fc.array(fc.array(row, { minLength: 1, maxLength: 60 }), { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 60 }),
        (given, blocks, copies) => {
          const [one, other] = [engineFor(given, true), engineFor(given, false)]
          const { classifies } = LOSSES[given.name].loss
          for (const block of blocks) {
            const examples = examplesOf(Array.from({ length: copies }, () => block).flat())
            if (!classifies) for (let i = 0; i < examples.size; i++) examples.labels[i] *= 61.5 - (i % 7)
            one.learn(examples)
            other.learn(examples)
            assertEqual(one.bits, other.bits)
            learnedInKernel += examples.size >= 64 ? 1 : 0
          }
        }
      ),
      { numRuns: 300 }
    )
    assert.ok(learnedInKernel > 100)
  })

  it('has the same loss to the last bit if all rows are plain, in which features are in any order and may be repeated', () => {
    const rows = Array.from({ length: 5000 }, (_, i) => ({
      label: (i * i) % 3 === 0 ? 1 : 0,
      features: [i % 17, (i * i) % 31, 40 + (i % 211)].sort((a, b) => (i % 2 ? a - b : b - a)),
      values: [1, -0.5, 0.75]
    }))
    for (const name of Object.keys(LOSSES)) {
      const [one, other] = [true, false].map(hasKernel => engineFor({ ...base, name }, hasKernel))
      for (const engine of [one, other]) engine.learn(examplesOf(rows))
      assert.deepEqual(one.bits, other.bits, name)
    }
  })

  it('reports rows that do not fit as the loop does, with the rows before learned', () => {
    const good = Array.from({ length: 70 }, (_, i) => ({ label: i % 2, features: [i, i + 3], values: [1, 2] }))
    const bad = [
      { label: 2, features: [1], values: [1] },
      { label: 1, features: [-1], values: [1] },
      { label: 1, features: [1 << 21], values: [1] },
      { label: 1, features: [999], values: [3e38] }
    ]
    const given: Options = { ...base }
    for (const one of bad) {
      const states = [true, false].map(hasKernel => {
        const engine = engineFor(given, hasKernel)
        let message = ''
        try {
          engine.learn(examplesOf([...good, one, ...good]))
        } catch (error) {
          message = (error as Error).message
        }
        assert.notEqual(message, '')
        return { message, bits: engine.bits }
      })
      assert.equal(states[0].message, states[1].message)
      assertEqual(states[0].bits, states[1].bits)
    }
  })

  it('learns rows with more features than it holds at once', () => {
    const long = Array.from({ length: 100_000 }, (_, i) => i)
    const rows = Array.from({ length: 70 }, (_, i) => ({
      label: i % 2,
      features: i % 30 === 20 ? long : [i, 200 + i],
      values: new Array(100_000).fill(0.01)
    }))
    const states = [true, false].map(hasKernel => {
      const engine = engineFor(base, hasKernel)
      engine.learn(examplesOf(rows))
      return engine.bits
    })
    assertEqual(states[0], states[1])
  })
})

const base: Options = {
  name: 'logistic',
  averaging: { name: 'tail' },
  predictWith: 'average',
  step: 0.2,
  growth: 0.5,
  forget: undefined,
  maxForget: 0.05
}
