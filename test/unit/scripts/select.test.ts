/** Selection of tests by a pattern and by changed files. */
import assert from 'node:assert/strict'
import { selectByChange, selectByPattern } from '../../../scripts/testing/select.js'

const SOURCES = new Map([
  ['src/base/sum.ts', 'export const sum = 1'],
  ['src/learning/mean.ts', "import { sum } from '../base/sum.js'"],
  ['src/learning/lazy.ts', "export const load = () => import('./mean.js')"],
  ['test/support/data.ts', "import type { mean } from '../../src/learning/mean.js'"],
  [
    'test/unit/mean.test.ts',
    "import '../../src/learning/mean.js'\ndescribe('the mean', () => { it('is stable (1e9)', f) })"
  ],
  ['test/unit/lazy.test.ts', "import '../../src/learning/lazy.js'\nit('loads late', () => assert.equal(quorum, 3))"],
  ['test/property/data.test.ts', "import '../support/data.js'\nit(\"keeps the sum's sign\", f)"],
  ['test/data/large.test.ts', "import '../../src/base/sum.js'\nit('is stable on large data', f)"]
])

describe('selection of tests', () => {
  it('prefers paths, in any case', () => {
    assert.deepEqual(selectByPattern('Unit/MEAN', SOURCES), { files: ['test/unit/mean.test.ts'] })
  })

  it('limits files with a matching title to such titles', () => {
    assert.deepEqual(selectByPattern('stable (1e9)', SOURCES), {
      files: ['test/unit/mean.test.ts'],
      grep: '/stable \\(1e9\\)/i'
    })
    assert.deepEqual(selectByPattern("sum's", SOURCES).files, ['test/property/data.test.ts'])
  })

  it('falls back to source text', () => {
    assert.deepEqual(selectByPattern('quorum', SOURCES), { files: ['test/unit/lazy.test.ts'] })
    assert.deepEqual(selectByPattern('absent', SOURCES), { files: [] })
  })

  it('finds tests that import a changed file, also indirectly, lazily and for its types', () => {
    const all = ['test/property/data.test.ts', 'test/unit/lazy.test.ts', 'test/unit/mean.test.ts']
    assert.deepEqual(selectByChange(['src/base/sum.ts'], SOURCES), { files: all })
    assert.deepEqual(selectByChange(['src/learning/lazy.ts'], SOURCES).files, ['test/unit/lazy.test.ts'])
    assert.deepEqual(selectByChange(['test/unit/mean.test.ts'], SOURCES).files, ['test/unit/mean.test.ts'])
    assert.deepEqual(selectByChange(['src/gone.ts'], SOURCES).files, [])
  })
})
