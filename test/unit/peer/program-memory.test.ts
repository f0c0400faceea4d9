/** The memory that a peer of a program states before it starts. */
import assert from 'node:assert/strict'
import { checkMemory, memoryOf } from '../../../src/peer/program-memory.js'
import type { TaskOptions } from '../../../src/task/options.js'
import { programSpec } from '../../../src/task/spec.js'

const N = 2e7
const specOf = (options: TaskOptions, length = N) =>
  programSpec({ batch: 64, ...options }, { blocks: [{ name: 'w', length }], fingerprint: '', start: '' })

describe('the memory of a peer whose gradients a program computes', () => {
  it('grows with the state of the rule, the average, and what integer sums need', async () => {
    const perParameter = async (options: TaskOptions) => {
      const bytes = (await memoryOf(specOf(options))) - (await memoryOf(specOf(options, N / 2)))
      return bytes / (N / 2)
    }
    const least = await perParameter({ rule: { name: 'mirror-descent' }, averaging: { name: 'none' }, sums: 'exact' })
    assert.equal(Math.round(least), 20 + 12 + 16 + 16)
    assert.equal(
      await perParameter({ rule: { name: 'mirror-descent' }, averaging: { name: 'none' }, sums: 'lattice' }),
      least + 6
    )
    assert.equal(await perParameter({ rule: { name: 'mirror-descent' }, sums: 'exact' }), least + 12)
    assert.equal(await perParameter({ rule: { name: 'adam' }, averaging: { name: 'none' }, sums: 'exact' }), least + 24)
  })

  it('is logged for large models, and refused if the machine has less', async () => {
    const lines: string[] = []
    const log = (_level: string, line: string) => void lines.push(line)
    await checkMemory(specOf({ rule: { name: 'adam' } }, 100), log)
    assert.deepEqual(lines, [])
    await checkMemory(specOf({ rule: { name: 'adam' } }), log, 64e9)
    assert.match(
      lines.join(),
      /^20,000,000 parameters need about 2\.\d GB in this process, of which the program shares 0\.4 GB$/
    )
    await assert.rejects(checkMemory(specOf({ rule: { name: 'adam' } }), log, 1e9), {
      code: 'ERR_PROGRAM',
      message: /need about 2\.\d GB in this process, and the machine has 1\.0 GB: give a rule with less state/
    })
  })
})
