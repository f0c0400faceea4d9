/** docs/reference/errors.md lists exactly the codes of all errors. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { CommanderError } from 'commander'
import { explain } from '../../../src/cli/errors.js'
import { MissingStateError } from '../../../src/storage/errors.js'

const root = new URL('../../../../', import.meta.url)

function filesUnder(folder: string): URL[] {
  const files = readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
  return files.filter(file => file.endsWith('.ts')).map(file => new URL(`${folder}/${file}`, root))
}

function codesIn(text: string): string[] {
  return [...text.matchAll(/['`](ERR_[A-Z_]+)['`]/g)].map(([, code]) => code)
}

describe('errors', () => {
  it('have documented codes', () => {
    const listed = new Set(codesIn(readFileSync(new URL('docs/reference/errors.md', root), 'utf8')))
    const sources = ['src', 'sim'].flatMap(filesUnder)
    const thrown = new Set(sources.flatMap(file => codesIn(readFileSync(file, 'utf8'))))
    assert.deepEqual([...listed].sort(), [...thrown].sort())
  })

  it('are printed in one line with their code', () => {
    const { line, exitCode } = explain(new MissingStateError('there'))
    assert.match(line ?? '', /^there contains no admb state: .* \(ERR_STATE_MISSING\)$/)
    assert.equal(exitCode, 1)
    const mistake = explain(
      new CommanderError(1, 'commander.unknownOption', "error: unknown option '--bacth'\n(--batch?)")
    )
    assert.match(mistake.line ?? '', /^unknown option '--bacth' \(--batch\?\): .* \(ERR_USAGE\)$/)
    assert.equal(mistake.exitCode, 2)
  })
})
