/** Facts that the documents state agree with the code, and with the results that they link. */
import assert from 'node:assert/strict'
import { dirname, normalize } from 'node:path'
import { commandNames } from '../../../src/cli/commands/index.js'
import { rows } from '../../../src/cli/options/table.js'
import { PROTOCOL_VERSION } from '../../../src/task/learning-spec.js'
import { anchor, pages, prose, read, sentences } from '../../support/documents.js'

/** A section of a page with its subsections; the page without an anchor. */
function section(page: string, wanted: string | undefined): string {
  if (wanted === undefined) return read(page)
  const lines = read(page).split('\n')
  const levelOf = (line: string) => /^(#+) /.exec(line)?.[1].length ?? 0
  const start = lines.findIndex(line => levelOf(line) > 0 && anchor(line.replace(/^#+ +/, '').trim()) === wanted)
  const rest = lines.slice(start + 1)
  const end = rest.findIndex(line => levelOf(line) > 0 && levelOf(line) <= levelOf(lines[start]))
  return rest.slice(0, end < 0 ? undefined : end).join('\n')
}

/** Numbers of a text with digits, apart from those in names and code. */
function numbers(text: string): string[] {
  const plain = text.replace(/`[^`]*`/g, ' ').replace(/\]\([^)]*\)/g, ' ')
  return [...plain.matchAll(/(?<![\w.^])\d[\d,]*(?:\.\d+)?(?![\w^])/g)].map(([number]) => number.replace(/,$/, ''))
}

describe('facts of the documents', () => {
  it('list every command', () => {
    const listed = [...read('docs/reference/cli.md').matchAll(/^\| `admb ([a-z]+)` +\|/gm)].map(match => match[1])
    assert.deepEqual([...listed].sort(), [...commandNames].sort())
  })

  it('state the version of the protocol', () => {
    const versions = ['protocol', 'protocol-network', 'protocol-overlay'].flatMap(name =>
      [...read(`docs/reference/${name}.md`).matchAll(/"protocol":(\d+)|^# .*version (\d+)/gm)].map(([, a, b]) => a ?? b)
    )
    assert.ok(versions.length >= 3, `${versions.length} versions`)
    assert.deepEqual(
      versions.filter(version => Number(version) !== PROTOCOL_VERSION),
      []
    )
  })

  it('state one size of TensorFlow', () => {
    const help = rows.find(({ name }) => name === 'fix')?.help ?? ''
    const size = /[\d.]+ GB/.exec(help)?.[0] ?? 'no size'
    const stated = pages().flatMap(page => [...prose(page).matchAll(/tensorflow`[^.]*?([\d.]+ GB)/gi)])
    assert.ok(stated.length > 0)
    assert.deepEqual(
      stated.filter(match => match[1] !== size).map(match => match[0]),
      []
    )
  })

  it('repeat numbers of the results that they link', () => {
    const faults: string[] = []
    let checked = 0
    for (const page of pages().filter(name => !/results|CHANGELOG/.test(name))) {
      for (const sentence of sentences(page)) {
        const links = [...sentence.matchAll(/\]\(([^)#\s]*results\/[^)#\s]+\.md)(?:#([^)\s]+))?\)/g)]
        if (links.length === 0) continue
        const found = links.map(match => section(normalize(`${dirname(page)}/${match[1]}`), match[2])).join('\n')
        for (const number of numbers(sentence)) {
          checked++
          if (!numbers(found).includes(number))
            faults.push(`${page}: ${number} is not in the results that it links: ${sentence}`)
        }
      }
    }
    assert.ok(checked > 5, `${checked} numbers`)
    assert.deepEqual(faults, [])
  })
})
