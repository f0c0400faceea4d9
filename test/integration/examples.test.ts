/** The examples of the library's page, run as they stand there, and what they must come to. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'

const FOLDER = 'examples'

async function printed(example: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [`${FOLDER}/${example}`], { timeout: 100_000 })
  return stdout
}

describe('the examples', function () {
  this.timeout(120_000)

  it('two peers learn from one another', async () => {
    const text = await printed('two-peers.mjs')
    assert.ok(Number(/never seen: (\d+) % right/.exec(text)?.[1]) > 80, text)
  })

  it("a program's own loss, rule, layer and reader learn, in one process and in a peer", async () => {
    const text = await printed('custom-parts.mjs')
    assert.ok(Math.abs(Number(/trained: (\S+)/.exec(text)?.[1]) - 4) < 1, text)
    assert.ok(Math.abs(Number(/peer: (\S+)/.exec(text)?.[1]) + 1) < 1, text)
    assert.ok(Number(/error (\S+)/.exec(text)?.[1]) < 1, text)
  })

  it('ADMB comes between one learner for all and each alone', async () => {
    const regrets = [...(await printed('compare.mjs')).matchAll(/regret +(\d+)/g)].map(match => Number(match[1]))
    assert.equal(regrets.length, 3)
    assert.ok(regrets[0] < regrets[1] && regrets[1] < regrets[2], regrets.join())
  })

  it('are all named on the page, and all run here', () => {
    const page = readFileSync('docs/library.md', 'utf8')
    const unnamed = readdirSync(FOLDER).filter(file => !page.includes(`examples/${file}`))
    assert.deepEqual(unnamed, [])
  })
})
