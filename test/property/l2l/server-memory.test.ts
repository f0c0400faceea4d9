/** Updates in the memory of the kernels, compared with those of arrays that are copied. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import {
  enterServerMemory,
  leaveServerMemory,
  ServerMemory,
  stepBlock
} from '../../../src/l2l/training/block-memory.js'
import { createAveraging, createRule, type RuleSpec, type WeightedAveraging } from '../../../src/learning/index.js'
import { uniforms } from '../../../src/nn/random.js'

const RULES: readonly RuleSpec[] = [
  { name: 'adam' },
  { name: 'adam', bits: 8 },
  { name: 'adamw', layerClip: 0.5 },
  { name: 'adamw', bits: 8 },
  { name: 'momentum' },
  { name: 'lamb', bits: 8 }
]
const averaging = createAveraging({ name: 'none' }) as WeightedAveraging
/** So that the arrays are not too small for a memory of their own. */
const FILLER = 300_000

interface Arrays {
  readonly parameters: Float32Array
  readonly gradient: Float32Array
  readonly state: readonly Float32Array[]
}

function arraysOf(lengths: readonly number[], allocate: (length: number) => Float32Array): Arrays {
  const [parameters, gradient, ...state] = lengths.map(allocate)
  return { parameters, gradient, state }
}

describe('the memory of a parameter server', () => {
  it('gives the same bits as copies, changes nothing else, and finds gradients that are not finite', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...RULES),
        fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 6000, max: 13_000 })),
        fc.nat(),
        fc.constantFrom(0, Number.NaN, Number.POSITIVE_INFINITY),
        (spec, length, seed, last) => {
          const rule = createRule(spec, { blocks: [{ name: 'a', length }] })
          const { blocks } = rule.stateLayout({ blocks: [{ name: 'a', length }] })
          const lengths = [length, length, ...blocks.map(block => block.length)]
          const bytes = 4 * lengths.reduce((sum, one) => sum + one, 2 * FILLER)
          const memory = new ServerMemory({ bytes, arrays: lengths.length + 2, threads: 1, isShared: true })
          ok(memory.shared)
          enterServerMemory(memory.shared, 0)
          try {
            const before = memory.allocate(FILLER).fill(Number.NaN)
            const there = arraysOf(lengths, one => memory.allocate(one))
            const after = memory.allocate(FILLER).fill(Number.NaN)
            const copied = arraysOf(lengths, one => new Float32Array(one))
            const random = uniforms(seed)
            for (let i = 0; i < length; i++) there.parameters[i] = random() - 0.5
            copied.parameters.set(there.parameters)
            for (let updates = 0; updates < 3; updates++) {
              for (let i = 0; i < length; i++) there.gradient[i] = (random() - 0.5) * 10 ** (4 * random() - 3)
              if (updates === 2) there.gradient[length - 1] += last
              copied.gradient.set(there.gradient)
              for (const { parameters, gradient, state } of [there, copied]) {
                const block = { parameters, average: parameters, state }
                equal(stepBlock(block, gradient, rule, averaging, 4, updates), updates < 2 || last === 0)
              }
            }
            deepEqual(there.parameters.slice(), copied.parameters)
            deepEqual(
              there.state.map(block => block.slice()),
              copied.state
            )
            ok([before, after].every(filler => filler.every(Number.isNaN)))
          } finally {
            leaveServerMemory(memory.shared)
          }
        }
      ),
      { numRuns: 60 }
    )
  })

  it('is that of single arrays if they are small', () => {
    const memory = new ServerMemory({ bytes: 400, arrays: 1, threads: 1, isShared: false })
    equal(memory.shared, undefined)
    equal(memory.allocate(100).length, 100)
  })
})
