/** The build of the pages fails on what browsers lack. That the pages themselves build is part of `npm run build`. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'vite'
import { pageConfig } from '../../../scripts/page-config.js'

describe('the build of the pages', () => {
  // Below the root of the repository, whose own code it checks.
  const root = resolve('dist', 'planted-page', String(process.pid))
  beforeEach(() => mkdirSync(root, { recursive: true }))
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const built = (code: string) => {
    writeFileSync(join(root, 'index.html'), '<script type="module" src="./main.ts"></script>')
    writeFileSync(join(root, 'main.ts'), code)
    const config = pageConfig([], 'unused')
    const input = join(root, 'index.html')
    return build({ ...config, root, logLevel: 'silent', build: { write: false, rolldownOptions: { input } } })
  }

  it('refuses modules of Node.js', async () => {
    await assert.rejects(built("import { readFileSync } from 'node:fs'\nconsole.log(readFileSync('a'))\n"), /node:fs/)
  })

  it('refuses globals of Node.js', async () => {
    await assert.rejects(built('console.log(process.cwd())\n'), /process\.cwd, which browsers do not have/)
  })

  it('leaves out what nothing uses', async () => {
    await built("import { readFileSync } from 'node:fs'\nexport const read = () => readFileSync('a')\n")
  })

  it('takes the browser’s platform', async () => {
    await built("import { createSha256 } from '#platform'\nconsole.log(createSha256().digest('hex'))\n")
  })
})
