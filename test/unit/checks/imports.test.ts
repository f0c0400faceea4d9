/** The check of import directions fails on planted imports, and without a build. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { checkImports, MODULES } from '../../../scripts/check-imports.js'

describe('import directions', () => {
  let root: string
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'admb-imports-'))
    write('package.json', '{"name": "planted", "type": "module"}')
    for (const module of Object.keys(MODULES)) {
      write(`${module}/index.ts`, 'export const name = 1\n')
      write(`dist/${module}/index.js`, 'export const name = 1\n')
    }
  })
  afterEach(() => rmSync(root, { recursive: true }))

  it('accepts the imports that the table allows', async () => {
    write('src/peer/peer.ts', "import { name } from '../admb/index.js'\n")
    write('dist/src/peer/peer.js', "import { name } from '../admb/index.js'\n")
    write('src/data/read.ts', "import type { name } from '../learning/index.js'\n")
    assert.deepEqual(await checkImports(root), [])
  })

  it('finds a value from a module that may be imported for types only', async () => {
    write('dist/src/admb/node.js', "import { name } from '../learning/index.js'\n")
    const [violation, ...others] = await checkImports(root)
    assert.match(
      violation,
      /^dist\/src\/admb\/node\.js imports dist\/src\/learning\/index\.js: src\/admb may import only src\/admb, src\/base, src\/numeric, src\/platform$/
    )
    assert.deepEqual(others, [])
  })

  it('finds a type from a module above, which leaves no trace in the build', async () => {
    write('src/overlay/node.ts', "import type { name } from '../peer/index.js'\n")
    const [violation, ...others] = await checkImports(root)
    assert.match(
      violation,
      /^src\/overlay\/node\.ts imports src\/peer\/index\.ts: src\/overlay may import only src\/overlay, src\/base$/
    )
    assert.deepEqual(others, [])
  })

  it('finds dynamic imports', async () => {
    write('src/learning/late.ts', "export const late = () => import('../cli/index.js')\n")
    write('dist/src/learning/late.js', "export const late = () => import('../cli/index.js')\n")
    assert.equal((await checkImports(root)).length, 2)
  })

  it('finds circles', async () => {
    write('dist/src/admb/a.js', "import './b.js'\n")
    write('dist/src/admb/b.js', "import './a.js'\n")
    assert.match((await checkImports(root)).join('\n'), /circle/)
  })

  it('finds an import of a missing file', async () => {
    write('dist/src/admb/a.js', "import './gone.js'\n")
    assert.match((await checkImports(root)).join('\n'), /leads nowhere/)
  })

  it('finds a folder that is not in the table', async () => {
    write('src/misc/index.ts', 'export const name = 1\n')
    assert.match((await checkImports(root)).join('\n'), /misc/)
  })

  it('fails if a module has no files', async () => {
    rmSync(join(root, 'dist/src/overlay'), { recursive: true })
    assert.match((await checkImports(root)).join('\n'), /saw no file of dist\/src\/overlay/)
  })

  it('fails if there is no build', async () => {
    rmSync(join(root, 'dist'), { recursive: true })
    assert.match((await checkImports(root)).join('\n'), /build first/)
  })
})
