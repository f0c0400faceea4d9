/** The default rule of one learner takes shorter steps where rows have many features; that of peers does not depend on their rows. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Random } from '../../../src/data/random.js'
import { createPeerTask } from '../../../src/task/task.js'
import { admbJson } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

const WORDS = 4000

describe('the default rule', function () {
  this.timeout(60_000)
  const folder = scratchFolder()

  /** Texts of words, some of them common, of which each makes one class more probable. One label of ten is wrong. */
  async function texts(words: number): Promise<string> {
    const random = new Random(words)
    const lines = Array.from({ length: 3000 }, () => {
      const row = Array.from({ length: words }, () => Math.min(random.below(WORDS), random.below(WORDS)))
      const evidence = row.reduce((sum, word) => sum + (word % 2 === 0 ? 1 : -1), 0)
      return `${evidence > 0 === random.below(10) > 0 ? 'yes' : 'no'},${row.map(word => `word${word}`).join(' ')}\n`
    })
    const path = join(folder, `words${words}.csv`)
    await writeFile(path, `label,text\n${lines.join('')}`)
    return path
  }

  it('learns rows with many words better than the usual step, and others with that step', async () => {
    const losses = async (words: number) => {
      const data = await texts(words)
      const [own, usual] = [[], ['--rule', 'adagrad']]
      const [a, b] = [
        await admbJson(['train', '--data', data, ...own]),
        await admbJson(['train', '--data', data, ...usual])
      ]
      return a.averageLoss / b.averageLoss
    }
    const ratio = await losses(80)
    assert.ok(ratio < 0.85, String(ratio))
    assert.equal(await losses(15), 1)
  })

  it('is the same for all peers', async () => {
    const rules = await Promise.all(
      [80, 15].map(async words => {
        const data = await texts(words)
        return (await createPeerTask({ hashBits: 12, data: { data, label: 'label' } })).spec.rule
      })
    )
    assert.deepEqual(rules[0], rules[1])
  })
})
