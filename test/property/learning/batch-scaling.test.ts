/** Step sizes that grow with the batch: replays have the same bits, and a batch of the reference has the step as given. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createRule, isBlockwise, type RuleSpec, stateBlockIndices, zeros } from '../../../src/learning/index.js'
import type { Blocks, RuleState } from '../../../src/learning/types.js'

const layout = {
  blocks: [
    { name: 'a', length: 5 },
    { name: 'b', length: 3, vectors: [[2, 3]] as const }
  ]
}
/** Far from the smallest numbers, whose products are rounded. */
const number = fc.integer({ min: -512, max: 512 }).map(whole => whole / 256)
const blocks = fc.tuple(
  ...layout.blocks.map(({ length }) => fc.array(number, { minLength: length, maxLength: length }))
)
const update = fc.record({ sum: blocks, count: fc.integer({ min: 1, max: 5000 }) })
const updates = fc.array(update, { minLength: 1, maxLength: 6 })

const scaled = fc
  .tuple(
    fc.constantFrom<RuleSpec>(
      { name: 'momentum' },
      { name: 'adam' },
      { name: 'adam', bits: 8 },
      { name: 'adamw', decay: 0.1 },
      { name: 'adamw', decay: 0.1, clip: 0.3 },
      { name: 'adamw', decay: 0.1, layerClip: 0.2, warmup: 2, schedule: 'cosine', total: 5 },
      { name: 'adamw', layerClip: 0.2, bits: 8 },
      { name: 'lamb', decay: 0.1 },
      { name: 'lars', decay: 0.1 }
    ),
    fc.integer({ min: 1, max: 4096 }),
    fc.constantFrom('linear', 'root', undefined)
  )
  .map(([spec, reference, scaling]) => ({ ...spec, reference, scaling }) as RuleSpec)

const toBlocks = (numbers: readonly (readonly number[])[]): Blocks => numbers.map(block => Float32Array.from(block))

interface Update {
  readonly sum: readonly (readonly number[])[]
  readonly count: number
}

function learn(spec: RuleSpec, initial: readonly (readonly number[])[], all: readonly Update[]): RuleState {
  const rule = createRule(spec, layout)
  let now: RuleState = { parameters: toBlocks(initial), state: zeros(rule.stateLayout(layout)) }
  for (const [i, { sum, count }] of all.entries()) now = rule.step(now, toBlocks(sum), count, i)
  return now
}

describe('step sizes that grow with the batch', () => {
  it('replay the same bits: again, in place, and block by block', () => {
    fc.assert(
      fc.property(scaled, blocks, updates, (spec, initial, all) => {
        const expected = learn(spec, initial, all)
        assert.deepEqual(learn(spec, initial, all), expected)
        const rule = createRule(spec, layout)
        if (rule.stepInPlace !== undefined) {
          const now = { parameters: toBlocks(initial), state: zeros(rule.stateLayout(layout)) }
          for (const [i, { sum, count }] of all.entries()) rule.stepInPlace(now, toBlocks(sum), count, i)
          assert.deepEqual(now, expected)
        }
        if (!isBlockwise(spec)) return
        for (const [k, positions] of stateBlockIndices(rule, layout).entries()) {
          const part = { blocks: [layout.blocks[k]] }
          const alone = createRule(spec, part)
          let now: RuleState = { parameters: [Float32Array.from(initial[k])], state: zeros(alone.stateLayout(part)) }
          for (const [i, { sum, count }] of all.entries()) now = alone.step(now, toBlocks([sum[k]]), count, i)
          assert.deepEqual(now.parameters[0], expected.parameters[k])
          assert.deepEqual(
            now.state,
            positions.map(position => expected.state[position])
          )
        }
      }),
      { numRuns: 400 }
    )
  })

  it('are those of the step times the factor of the batch', () => {
    // Powers of two, with which products are exact.
    const power = fc.integer({ min: 0, max: 5 }).map(exponent => 4 ** exponent)
    fc.assert(
      fc.property(scaled, blocks, updates, power, power, (spec, initial, all, count, reference) => {
        const same = all.map(({ sum }) => ({ sum, count }))
        const { scaling = spec.name === 'momentum' || spec.name === 'lars' ? 'linear' : 'root', ...rest } = spec as {
          scaling?: 'linear' | 'root'
          name: 'adam'
        }
        const ratio = count / reference
        const factor = scaling === 'linear' ? ratio : Math.sqrt(ratio)
        const step = 2 ** -6
        const plain = { ...rest, step: step * factor, reference: undefined } as RuleSpec
        const { parameters } = learn({ ...rest, scaling, reference, step } as RuleSpec, initial, same)
        assert.deepEqual(parameters, learn(plain, initial, same).parameters)
      }),
      { numRuns: 400 }
    )
  })
})
