/** The operations of a tab, compared with those of TensorFlow.js, whose place they take there. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import * as own from '../../../src/browser/tensors/index.js'
import { openDevice } from '../../../src/device/index.js'

type Numbers = readonly number[]
/** TensorFlow.js and the module under test, which have the same functions. */
type Library = typeof tf

const length = fc.integer({ min: 1, max: 4 })
const shapes = fc.array(length, { minLength: 1, maxLength: 4 })
const { sin } = Math

/** Numbers that look random, by their places. */
const numbers = (count: number, seed: number) => Float32Array.from({ length: count }, (_, i) => sin(i * 12.9898 + seed))
const sizeOf = (shape: Numbers) => shape.reduce((product, one) => product * one, 1)
const like = (of: Library, shape: Numbers, seed = 1) => of.tensor(numbers(sizeOf(shape), seed), [...shape])
/** A shape that broadcasts to the given one: some leading axes are missing, some have length 1. */
const broadcastable = (shape: Numbers, missing: number, ones: readonly boolean[]) =>
  shape.slice(missing % (shape.length + 1)).map((one, axis) => (ones[axis % ones.length] ? 1 : one))

function assertSame(compute: (of: Library) => tf.Tensor): void {
  const [expected, actual] = [compute(tf), compute(own as unknown as Library)]
  assert.deepEqual([...actual.shape], [...expected.shape])
  const [theirs, ours] = [expected.dataSync(), actual.dataSync()]
  assert.equal(ours.length, theirs.length)
  for (const [i, number] of ours.entries()) {
    assert.ok(Math.abs(number - theirs[i]) <= 1e-5 * (1 + Math.abs(theirs[i])), `${number} at ${i}, not ${theirs[i]}`)
  }
}

const UNARY = ['abs', 'exp', 'neg', 'relu', 'sigmoid', 'square', 'step', 'tanh', 'clone', 'softmax', 'logSoftmax']
const BINARY = ['add', 'sub', 'mul', 'div', 'equal', 'greater']

describe('the operations of a tab', () => {
  before(() => openDevice('cpu'))

  for (const name of UNARY) {
    it(name, () => {
      const compute = (of: Library, x: tf.Tensor) => (of[name as 'neg'] as (x: tf.Tensor) => tf.Tensor)(x)
      fc.assert(fc.property(shapes, shape => assertSame(of => compute(of, like(of, shape)))))
    })
  }

  for (const name of BINARY) {
    it(`${name}, with broadcasting`, () => {
      const ones = fc.array(fc.boolean(), { minLength: 1, maxLength: 4 })
      const cases = fc.tuple(shapes, fc.nat(4), ones, fc.boolean())
      fc.assert(
        fc.property(cases, ([shape, missing, ones, isSwapped]) =>
          assertSame(of => {
            const arguments_ = [like(of, shape), like(of, broadcastable(shape, missing, ones), 2)]
            const [a, b] = isSwapped ? arguments_.reverse() : arguments_
            return of.cast(of[name as 'add'](a, b), 'float32')
          })
        )
      )
    })
  }

  it('sums, means, maxima and moves along axes', () => {
    const cases = fc.tuple(shapes, fc.nat(3), fc.integer({ min: 1, max: 3 }), fc.boolean())
    fc.assert(
      fc.property(cases, ([shape, nth, times, flag]) => {
        const axis = nth % shape.length
        const order = shape.map((_, i) => (i + nth) % shape.length)
        const begin = shape.map((one, i) => (i + nth) % one)
        const each = (value: (i: number) => number) => shape.map((_, i) => value(i))
        const x = (of: Library) => like(of, shape)
        assertSame(of => of.sum(x(of), axis, flag))
        assertSame(of => of.sum(x(of)))
        assertSame(of => of.mean(x(of), axis))
        assertSame(of => of.argMax(x(of), axis))
        assertSame(of => of.rsqrt(of.square(x(of))))
        assertSame(of => of.cumsum(x(of), axis, flag))
        assertSame(of => of.transpose(x(of), order))
        assertSame(of => of.transpose(x(of)))
        assertSame(of => of.reverse(x(of), [axis]))
        assertSame(of => of.slice(x(of), begin, flag ? each(() => -1) : each(i => shape[i] - begin[i])))
        assertSame(of =>
          of.tile(
            x(of),
            each(i => 1 + ((times + i) % 3))
          )
        )
        assertSame(of =>
          of.pad(
            x(of),
            shape.map((_, i) => [i % 2, times] as [number, number])
          )
        )
        assertSame(of => of.concat([x(of), like(of, shape, 3)], axis))
        assertSame(of => of.stack([x(of), like(of, shape, 3)]))
        assertSame(of => of.reshape(x(of), [-1, shape[axis]]))
        assertSame(of => of.cast(of.fill([...shape], times), 'int32'))
      })
    )
  })

  it('chooses rows by indices', () => {
    const cases = fc.tuple(length, length, fc.array(fc.nat(99), { minLength: 1, maxLength: 9 }))
    fc.assert(
      fc.property(cases, ([rows, width, given]) => {
        const indices = (of: Library) =>
          of.tensor(
            Int32Array.from(given, index => index % rows),
            [given.length],
            'int32'
          )
        assertSame(of => of.gather(like(of, [rows, width]), indices(of)))
        assertSame(of => of.oneHot(indices(of) as tf.Tensor1D, rows + 1))
        const updates = (of: Library) => like(of, [given.length, width])
        assertSame(of => of.scatterND(of.reshape(indices(of), [-1, 1]), updates(of), [rows, width]))
      })
    )
    const indices = own.tensor(Int32Array.of(3), [1], 'int32')
    assert.throws(() => own.gather(own.ones([3, 2]), indices), /row 3 is out of range/)
  })

  it('multiplies matrices', () => {
    const size = fc.integer({ min: 1, max: 9 })
    fc.assert(
      fc.property(
        fc.tuple(fc.option(length), size, size, size, fc.boolean(), fc.boolean()),
        ([batch, n, k, m, a, b]) => {
          const outer = batch === null ? [] : [batch]
          const left = [...outer, ...(a ? [k, n] : [n, k])]
          const right = [...outer, ...(b ? [m, k] : [k, m])]
          assertSame(of => of.matMul(like(of, left), like(of, right, 2), a, b))
        }
      )
    )
    assert.throws(() => own.matMul(own.ones([2, 3]), own.ones([2, 3])), /is not defined/)
    assert.throws(() => own.add(own.ones([2, 3]), own.ones([2, 2])), /do not fit/)
  })

  it('convolves images, pools them, and passes gradients back', () => {
    const cases = fc.record({
      count: fc.integer({ min: 1, max: 2 }),
      height: fc.integer({ min: 3, max: 8 }),
      width: fc.integer({ min: 3, max: 8 }),
      channels: fc.integer({ min: 1, max: 3 }),
      filters: fc.integer({ min: 1, max: 3 }),
      size: fc.integer({ min: 1, max: 3 }),
      stride: fc.integer({ min: 1, max: 3 }),
      padding: fc.constantFrom('same' as const, 'valid' as const)
    })
    fc.assert(
      fc.property(cases, ({ count, height, width, channels, filters, size, stride, padding }) => {
        const shape: [number, number, number, number] = [count, height, width, channels]
        const x = (of: Library) => like(of, shape) as tf.Tensor4D
        const kernel = (of: Library) => like(of, [size, size, channels, filters], 2) as tf.Tensor4D
        assertSame(of => of.conv2d(x(of), kernel(of), stride, padding))
        const zeros: [number, number][] = [
          [0, 0],
          [size, 1],
          [0, size],
          [0, 0]
        ]
        assertSame(of => of.conv2d(x(of), kernel(of), 1, zeros as Parameters<Library['conv2d']>[3]))
        if (2 * (size - 1) < Math.min(height, width)) {
          assertSame(of => of.conv2d(x(of), kernel(of), 1, 'valid', 'NHWC', 2))
        }
        if (size > 1) assertSame(of => of.maxPool(x(of), size, size, 'valid'))
      })
    )
  })
})
