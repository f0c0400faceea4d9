/** The kernel of Adam: the same bits as the same operations of float32 one by one, and nothing written outside the block. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createRule } from '../../../src/learning/rules/index.js'
import { SECTION } from '../../../src/numeric/block-code.js'
import { randomFrom } from '../../support/learning/rows.js'

const f = Math.fround
const [step, beta1, beta2, epsilon] = [0.01, 0.9, 0.999, 1e-8]

interface State {
  readonly w: Float32Array
  readonly m: Float32Array
  readonly v: Float32Array
  readonly corrections: Float32Array
}

/** Rounded to float32 after each operation. */
function expected({ w, m, v, corrections }: State, sum: Float32Array, count: number): void {
  corrections[0] = beta1 * corrections[0] + (1 - beta1)
  corrections[1] = beta2 * corrections[1] + (1 - beta2)
  const [perCount, rate, correction] = [f(1 / count), f(step / corrections[0]), f(1 / corrections[1])]
  for (let i = 0; i < w.length; i++) {
    const g = f(sum[i] * perCount)
    m[i] = f(f(m[i] * f(beta1)) + f(g * f(1 - beta1)))
    v[i] = f(f(v[i] * f(beta2)) + f(f(g * f(1 - beta2)) * g))
    w[i] = f(w[i] - f(f(m[i] * rate) / f(f(Math.sqrt(f(v[i] * correction))) + f(epsilon))))
  }
}

describe('the kernel of Adam', () => {
  it('computes the bits of float32 operations, for any length and in shared memory too', () => {
    const lengths = fc.oneof(
      fc.integer({ min: 0, max: 40 }),
      fc.constantFrom(SECTION - 1, SECTION, SECTION + 5, 3 * SECTION)
    )
    fc.assert(
      fc.property(
        lengths,
        fc.integer({ min: 1, max: 300 }),
        fc.integer(),
        fc.boolean(),
        (length, count, seed, isShared) => {
          const random = randomFrom(seed)
          const room = new Float32Array(new (isShared ? SharedArrayBuffer : ArrayBuffer)(4 * (length + 8)))
          const parameters = room.subarray(3, 3 + length)
          for (let i = 0; i < length; i++) parameters[i] = random() - 0.5
          const rule = createRule({ name: 'adam', step, beta1, beta2, epsilon })
          const state = rule
            .stateLayout({ blocks: [{ name: 'a', length }] })
            .blocks.map(block => new Float32Array(block.length))
          const reference = {
            w: Float32Array.from(parameters),
            m: new Float32Array(length),
            v: new Float32Array(length),
            corrections: new Float32Array(2)
          }
          for (let update = 0; update < 3; update++) {
            const sum = Float32Array.from({ length }, () => (random() - 0.5) * 10 ** Math.round(8 * random() - 4))
            rule.stepInPlace?.({ parameters: [parameters], state }, [sum], count, update)
            expected(reference, sum, count)
          }
          const { w, m, v, corrections } = reference
          assert.deepEqual([Float32Array.from(parameters), ...state], [w, m, v, corrections])
          assert.ok([...room.subarray(0, 3), ...room.subarray(3 + length)].every(value => value === 0))
        }
      ),
      { numRuns: 60 }
    )
  })
})
