/** The WebAssembly loops of softmax have the same bits in every cell as those in TypeScript, whatever the rows are. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SoftmaxKernel } from '../../../src/learning/engines/softmax-kernel.js'
import { SparseSoftmaxEngine } from '../../../src/learning/engines/sparse-softmax.js'
import { type AveragingSpec, createAveraging, type Examples, type PredictWith } from '../../../src/learning/index.js'

class OpenEngine extends SparseSoftmaxEngine {
  get bits() {
    const { agreement, cells, progress, retention, updates } = this
    const { outcomes, ...sums } = progress
    // The sign of a lag of 0 has no effect.
    return {
      agreement,
      cells: cells.map(number => number + 0),
      metrics: outcomes?.metrics(1),
      retention,
      sums,
      updates
    }
  }
}

/** Number of steps in WebAssembly. */
let steps = 0

class CountingKernel extends SoftmaxKernel {
  override step(...args: Parameters<SoftmaxKernel['step']>) {
    steps++
    return super.step(...args)
  }
}

interface Options {
  readonly outputs: number
  readonly named: number
  readonly averaging: AveragingSpec
  readonly predictWith: PredictWith
  readonly growth: number
  readonly classWeights: readonly number[] | undefined
  readonly dimension: number | undefined
}

/** The same engine with the kernel and without it. */
function engines({ averaging, ...given }: Options): [OpenEngine, OpenEngine] {
  const adagrad = { initial: 0.01, step: 0.2, growth: given.growth, maxForget: 0.05 } as ConstructorParameters<
    typeof SoftmaxKernel
  >[1]
  const options = { ...given, dimensionLimit: 1 << 20, adagrad, averaging: createAveraging(averaging) }
  return [new OpenEngine(options, new CountingKernel(given.outputs, adagrad)), new OpenEngine(options)]
}

interface Row {
  readonly label: number
  readonly features: readonly number[]
  readonly values: readonly number[]
}

function examplesOf(rows: readonly Row[], weights?: readonly number[]): Examples {
  const offsets = [0]
  for (const { features } of rows) offsets.push((offsets.at(-1) as number) + features.length)
  return {
    size: rows.length,
    labels: Float64Array.from(rows.map(({ label }) => label)),
    offsets: Int32Array.from(offsets),
    indices: Int32Array.from(rows.flatMap(({ features }) => features)),
    values: Float32Array.from(
      rows.flatMap(({ features, values }) => features.map((_, i) => values[i % values.length]))
    ),
    ...(weights && { weights: Float32Array.from(rows, (_, i) => weights[i % weights.length]) })
  }
}

const ascending = fc.uniqueArray(fc.nat(80), { maxLength: 10 }).map(features => features.sort((a, b) => a - b))
const value = fc.oneof(fc.constantFrom(1, -1, 0.25, 0, -0, 300), fc.float({ noNaN: true, min: -8, max: 8 }))
const row = fc.record({
  label: fc.oneof({ weight: 20, arbitrary: fc.nat(1) }, { weight: 1, arbitrary: fc.constant(Number.NaN) }),
  features: fc.oneof(
    { weight: 4, arbitrary: ascending },
    { weight: 3, arbitrary: fc.uniqueArray(fc.nat(80), { maxLength: 10 }) },
    { weight: 2, arbitrary: fc.array(fc.nat(9), { maxLength: 9 }) },
    { weight: 1, arbitrary: fc.array(fc.nat(99), { maxLength: 6 }) }
  ),
  values: fc.array(value, { minLength: 1, maxLength: 10 })
})
const options = fc.record({
  outputs: fc.constantFrom(2, 3, 4, 7),
  named: fc.constant(2),
  averaging: fc.constantFrom<AveragingSpec>({ name: 'tail' }, { name: 'uniform' }),
  predictWith: fc.constantFrom<PredictWith>('average', 'current'),
  growth: fc.constantFrom(0, 0.5),
  classWeights: fc.constantFrom(undefined, [1, 2, 0.5, 1, 1, 3, 1]),
  dimension: fc.constantFrom(undefined, 100)
})

describe('the kernels of softmax', () => {
  it('have the bits of the loops in TypeScript, for plain rows and others', () => {
    fc.assert(
      fc.property(
        options,
        fc.array(fc.array(row, { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 3 }),
        fc.option(fc.array(fc.constantFrom(0, 1, 2.5), { minLength: 1 }), { nil: undefined }),
        (given, blocks, weights) => {
          const pair = engines(given)
          for (const [i, block] of blocks.entries()) {
            // A class is added after each block, if there is room.
            const active = i === 0 ? 2 : Math.min(given.outputs, 2 + i)
            const rows = block.map((one, k) => ({ ...one, label: one.label === 1 ? k % active : one.label }))
            for (const engine of pair) engine.learn(examplesOf(rows, weights))
            assert.deepEqual(pair[0].bits, pair[1].bits)
            const added = pair.map(engine => engine.addClass(`class ${i}`))
            assert.equal(added[0], added[1])
          }
        }
      ),
      { numRuns: 300 }
    )
    assert.ok(steps > 2000)
  })

  it('have them for models that grow, rows that it cannot hold, and after resuming', () => {
    const long = Array.from({ length: 100_000 }, (_, i) => i)
    const rows = Array.from({ length: 200 }, (_, i) => ({
      label: i % 3,
      features: i === 120 ? long : [i, 1000 + 50 * i],
      values: [0.5, -1]
    }))
    const given: Options = { ...plainOptions, outputs: 3, named: 3 }
    const pair = engines(given)
    for (const engine of pair) engine.learn(examplesOf(rows))
    assert.deepEqual(pair[0].bits, pair[1].bits)
    const next = engines({ ...given, dimension: 100_000 })
    for (const [i, engine] of next.entries()) {
      engine.resume(pair[i].snapshot())
      engine.learn(examplesOf(rows))
    }
    assert.deepEqual(next[0].bits, next[1].bits)
  })

  it('refuse what the loops refuse', () => {
    const good = { label: 1, features: [1, 2], values: [1, 2] }
    for (const bad of [
      { label: 3, features: [1], values: [1] },
      { label: 1, features: [1 << 21], values: [1] },
      { label: 1, features: [7], values: [3e38] }
    ]) {
      const pair = engines({ ...plainOptions, outputs: 3, named: 3 })
      const messages = pair.map(engine => {
        try {
          engine.learn(examplesOf([good, bad, good]))
          return undefined
        } catch (error) {
          return (error as Error).message
        }
      })
      assert.notEqual(messages[0], undefined)
      assert.equal(messages[0], messages[1])
      assert.deepEqual(pair[0].bits, pair[1].bits)
    }
  })
})

const plainOptions: Options = {
  outputs: 2,
  named: 2,
  averaging: { name: 'tail' },
  predictWith: 'average',
  growth: 0.5,
  classWeights: undefined,
  dimension: undefined
}
