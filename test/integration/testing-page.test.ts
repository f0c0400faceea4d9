/** Runs the example of docs/guides/testing.md. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Inside the package, so that the example can import it by name. */
const FOLDER = 'dist/testing-page'

describe('docs/guides/testing.md', () => {
  after(() => rmSync(FOLDER, { recursive: true, force: true }))

  it('has a working example', function () {
    this.timeout(120_000)
    const [, code] = /<!-- run -->\n```js\n([\s\S]*?)```/.exec(readFileSync('docs/guides/testing.md', 'utf8')) ?? []
    assert.ok(code)
    mkdirSync(FOLDER, { recursive: true })
    const file = join(FOLDER, 'example.mjs')
    writeFileSync(file, code)
    const printed = execFileSync(process.execPath, [file], { encoding: 'utf8', timeout: 100_000 })
    assert.match(printed, /by sender, the shortest trial that fails: \[\{"scenario":/)
  })
})
