/** docs/glossary.md and docs/architecture.md refer to files that exist. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { read } from '../../support/documents.js'

/** Rows of the glossary's tables, without headers and separators. */
const rows = read('docs/glossary.md')
  .split('\n')
  .filter(line => line.startsWith('| ') && !line.startsWith('| ---') && !line.startsWith('| term '))
  .map(line =>
    line
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim())
  )

describe('docs/glossary.md', () => {
  it('refers to files that exist', () => {
    assert.ok(rows.length > 30, `${rows.length} terms`)
    const missing = rows.filter(([, , , file]) => !existsSync(file.replaceAll('`', '')))
    assert.deepEqual(missing, [])
  })

  it('defines each term once, in alphabetical order within its table', () => {
    const terms = rows.map(([term]) => term)
    assert.equal(new Set(terms).size, terms.length)
    const tables = read('docs/glossary.md').split('\n## ').slice(1)
    for (const table of tables) {
      const inTable = terms.filter(term => table.includes(`\n| ${term} |`))
      assert.deepEqual(inTable, inTable.toSorted())
    }
  })
})

describe('docs/architecture.md', () => {
  it('refers to files and folders that exist', () => {
    const paths = [...read('docs/architecture.md').matchAll(/`((?:src|sim|test|scripts)\/[\w./-]*)`/g)].map(
      ([, path]) => path
    )
    assert.ok(paths.length > 60, `${paths.length} paths`)
    assert.deepEqual(
      paths.filter(path => !existsSync(path)),
      []
    )
  })
})
