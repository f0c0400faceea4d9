/** docs/reference/glossary.md and docs/architecture.md refer to files that exist. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { read } from '../../support/documents.js'

/** Rows of the glossary's tables, without headers and separators. */
const rows = read('docs/reference/glossary.md')
  .split('\n')
  .filter(line => line.startsWith('| ') && !line.startsWith('| ---') && !line.startsWith('| term '))
  .map(line =>
    line
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim())
  )

describe('docs/reference/glossary.md', () => {
  it('refers to files that exist', () => {
    assert.ok(rows.length > 30, `${rows.length} terms`)
    const missing = rows.filter(([, , , file]) => !existsSync(file.replaceAll('`', '')))
    assert.deepEqual(missing, [])
  })

  it('defines each term once, in alphabetical order within its table', () => {
    const terms = rows.map(([term]) => term)
    assert.equal(new Set(terms).size, terms.length)
    const tables = read('docs/reference/glossary.md').split('\n## ').slice(1)
    for (const table of tables) {
      const inTable = terms.filter(term => table.includes(`\n| ${term} |`))
      assert.deepEqual(
        inTable,
        inTable.toSorted((a, b) => a.localeCompare(b, 'en', { sensitivity: 'base' }))
      )
    }
  })
})

describe('docs/architecture.md', () => {
  it('refers to files and folders that exist', () => {
    const lines = read('docs/architecture.md').split('\n')
    // A file name without a folder is in the folder of the name before it.
    const paths = lines.flatMap(line => {
      let folder = ''
      return [...line.matchAll(/`((?:(?:src|sim|test|scripts)\/[\w./-]*)|[\w.-]+\.ts)`/g)].map(([, name]) => {
        if (!name.includes('/')) return name === 'index.ts' ? '.' : join(folder, name)
        folder = dirname(name)
        return name
      })
    })
    assert.ok(paths.length > 100, `${paths.length} paths`)
    assert.deepEqual(
      paths.filter(path => !existsSync(path)),
      []
    )
  })

  it('fits on two screens', () => {
    const { length } = read('docs/architecture.md').trimEnd().split('\n')
    assert.ok(length <= 120, `${length} lines`)
  })
})
