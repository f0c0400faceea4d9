/** Update rules of networks: nanoseconds a weight of one thread, as the parameter server updates a layer. */

import { stepBlock } from '../../src/l2l/training/block-memory.js'
import { enterServerMemory, leaveServerMemory, ServerMemory } from '../../src/l2l/training/server-memory.js'
import { createAveraging, createRule, type RuleSpec, type WeightedAveraging } from '../../src/learner/index.js'
import { Random } from '../../src/streams/random.js'
import { median, type Row } from './row.js'

const LENGTH = 4_000_000
const RUNS = 21

const cases: readonly (readonly [name: string, rule: RuleSpec, most?: number])[] = [
  ['adam', { name: 'adam' }, 2],
  ['adam, 8 bits', { name: 'adam', bits: 8 }, 6],
  ['adamw', { name: 'adamw' }],
  ['adamw, 8 bits', { name: 'adamw', bits: 8 }],
  ['momentum', { name: 'momentum' }],
  ['momentum, 8 bits', { name: 'momentum', bits: 8 }],
  ['lamb', { name: 'lamb' }],
  ['lamb, 8 bits', { name: 'lamb', bits: 8 }]
]

export async function* bench(): AsyncGenerator<Row> {
  const random = new Random(1)
  const numbers = ({ length }: { readonly length: number }) =>
    Float32Array.from({ length }, () => random.uniform() - 0.5)
  const averaging = createAveraging({ name: 'none' }) as WeightedAveraging
  for (const [name, spec, most] of cases) {
    const rule = createRule(spec)
    const { blocks } = rule.stateLayout({ blocks: [{ name: 'a', length: LENGTH }] })
    const lengths = [LENGTH, LENGTH, LENGTH, ...blocks.map(({ length }) => length)]
    const bytes = lengths.reduce((sum, length) => sum + 4 * length, 0)
    const server = new ServerMemory({ bytes, arrays: lengths.length, threads: 1, isShared: true })
    enterServerMemory(server.shared, 0)
    const [parameters, first, second, ...state] = lengths.map(length => server.allocate(length))
    const gradients = [first, second]
    for (const vector of [parameters, ...gradients]) vector.set(numbers(vector))
    const memory = { parameters, average: parameters, state }
    const times = Array.from({ length: RUNS }, (_, updates) => {
      const start = performance.now()
      stepBlock(memory, gradients[updates % 2], rule, averaging, 32, updates)
      return performance.now() - start
    })
    const value = (1e6 * median(times)) / LENGTH
    const fastest = (1e6 * Math.min(...times)) / LENGTH
    leaveServerMemory(server.shared)
    yield { name, value, unit: 'ns', ...(most !== undefined && { target: { most } }), details: { fastest } }
  }
}
