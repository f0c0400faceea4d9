/** Safetensors files, for drawn tensors. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import fc from 'fast-check'
import { type NamedTensor, readSafetensors, writeSafetensors } from '../../../src/nn/weights/safetensors.js'
import { scratchFolder } from '../../support/scratch.js'

describe('safetensors', () => {
  const folder = scratchFolder()
  let file: string
  before(() => {
    file = join(folder, 'm.safetensors')
  })

  const tensor = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 }).chain(shape =>
    fc
      .array(fc.float(), {
        minLength: shape.reduce((a, b) => a * b, 1),
        maxLength: shape.reduce((a, b) => a * b, 1)
      })
      .map(numbers => ({ shape, numbers: Float32Array.from(numbers) }))
  )

  it('reads what was written, bit for bit', () =>
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string({ unit: 'binary' }).map(name => `t${name}`),
          tensor
        ),
        tensors => {
          const list: NamedTensor[] = Object.entries(tensors).map(([name, { shape, numbers }]) => ({
            name,
            shape,
            read: () => numbers
          }))
          writeSafetensors(file, list)
          const read = readSafetensors(file)
          assert.deepEqual([...read.keys()].sort(), Object.keys(tensors).sort())
          for (const [name, { shape, numbers }] of Object.entries(tensors)) {
            assert.deepEqual(read.get(name)?.shape, shape)
            assert.deepEqual(read.get(name)?.read(), numbers)
          }
        }
      ),
      { numRuns: 30 }
    ))
})
