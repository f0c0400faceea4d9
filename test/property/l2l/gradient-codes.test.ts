/** Codes of gradients: their bytes, what they lose, and that nothing stays lost. */
import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import {
  addCoded,
  type CodedBlocks,
  codeLength,
  type GradientCode,
  GradientEncoder,
  gradientCode
} from '../../../src/l2l/workers/gradient-codes.js'
import { uniforms } from '../../../src/nn/random.js'

const CODES: readonly GradientCode[] = ['rank:1', 'rank:3', 'sign']
const codes = fc.constantFrom(...CODES)
const axes = fc.integer({ min: 1, max: 12 })
const blocks = fc.array(fc.array(axes, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 })

const sizeOf = (shapes: readonly (readonly number[])[]) =>
  shapes.reduce((sum, shape) => sum + shape.reduce((product, axis) => product * axis, 1), 0)
const norm = (numbers: Float32Array) => Math.hypot(...numbers)
const difference = (a: Float32Array, b: Float32Array) => norm(a.map((value, i) => value - b[i]))

/** What arrives of the gradients that a worker sends. */
function sent(coded: CodedBlocks, gradients: readonly Float32Array[]): Float32Array[] {
  const encoder = new GradientEncoder(coded)
  return gradients.map(gradient => {
    const code = encoder.encode(0, gradient)
    equal(code.length, codeLength(coded, 0))
    const into = new Float32Array(gradient.length)
    addCoded(coded, 0, code, into)
    return into
  })
}

/** The product of two random matrices. */
function ofRank(rank: number, rows: number, columns: number, random: () => number): Float32Array {
  const [a, b] = [rows, columns].map(length => Float32Array.from({ length: length * rank }, () => random() - 0.5))
  return Float32Array.from({ length: rows * columns }, (_, at) => {
    const [i, j] = [Math.floor(at / columns), at % columns]
    return Array.from({ length: rank }, (_, k) => a[i * rank + k] * b[j * rank + k]).reduce((x, y) => x + y)
  })
}

describe('codes of gradients', () => {
  it('lose nothing of a matrix whose rank is at most theirs, and nothing of vectors with rank:R', () => {
    fc.assert(
      fc.property(axes, axes, fc.integer({ min: 1, max: 4 }), fc.nat(1000), (rows, columns, rank, seed) => {
        const random = uniforms(seed)
        const matrix = ofRank(rank, rows, columns, random)
        const gradient = Float32Array.from([...matrix, ...Float32Array.from({ length: 5 }, random)])
        const coded: CodedBlocks = { code: `rank:${rank}`, shapes: [[[rows, columns], [5]]] }
        for (const each of sent(coded, [gradient, gradient])) {
          ok(difference(each, gradient) <= 1e-4 * norm(gradient), `${difference(each, gradient) / norm(gradient)}`)
        }
      })
    )
  })

  it('send the sum of all gradients but for a rest that does not grow', () => {
    fc.assert(
      fc.property(codes, blocks, fc.nat(1000), (code, shapes, seed) => {
        const random = uniforms(seed)
        const length = sizeOf(shapes)
        const mean = Float32Array.from({ length }, () => random() - 0.5)
        const gradients = Array.from({ length: 60 }, () => mean.map(value => value + random() - 0.5))
        const largest = Math.max(...gradients.map(norm))
        const [all, arrived] = [new Float32Array(length), new Float32Array(length)]
        for (const [step, each] of sent({ code, shapes: [shapes] }, gradients).entries()) {
          for (let i = 0; i < length; i++) {
            all[i] += gradients[step][i]
            arrived[i] += each[i]
          }
          // A matrix of 144 × 12 numbers needs 12 steps of rank 1.
          ok(difference(all, arrived) <= 15 * largest, `step ${step}: ${difference(all, arrived) / largest}`)
        }
      })
    )
  })

  it('send a gradient that begins as zero', () => {
    for (const code of CODES) {
      const gradient = ofRank(1, 9, 10, uniforms(3))
      const [zero, ...others] = sent({ code, shapes: [[[9, 10]]] }, [gradient.map(() => 0), gradient, gradient])
      equal(norm(zero), 0)
      ok(norm(others[0]) > 0.5 * norm(gradient))
    }
  })

  it('tell the receiver that a gradient is not finite, and begin anew', () => {
    for (const code of CODES) {
      const gradient = ofRank(1, 9, 10, uniforms(3))
      const bad = gradient.map((value, i) => (i === 40 ? Number.POSITIVE_INFINITY : value))
      const coded: CodedBlocks = { code, shapes: [[[9, 10]]] }
      const [, broken, next] = sent(coded, [gradient, bad, gradient])
      ok(broken.every(Number.isNaN))
      deepEqual(next.every(Number.isFinite), true)
      ok(norm(next) > 0.5 * norm(gradient))
    }
  })

  it('are never longer than the block', () => {
    fc.assert(
      fc.property(codes, blocks, (code, shapes) => {
        ok(codeLength({ code, shapes: [shapes] }, 0) <= sizeOf(shapes))
      })
    )
    const shapes = [[[256, 64], [64]]]
    equal(codeLength({ code: 'rank:4', shapes }, 0), 4 * (256 + 64) + 64)
    equal(codeLength({ code: 'sign', shapes }, 0), 1 + (256 * 64) / 32 + 1 + 64 / 32)
  })

  it('have names', () => {
    deepEqual(['sign', 'rank:4'].map(gradientCode), ['sign', 'rank:4'])
    for (const word of ['', 'rank', 'rank:0', 'rank:1.5', 'sign:2', 'rank:12345']) {
      throws(() => gradientCode(word), /sign or rank:R/)
    }
  })
})
