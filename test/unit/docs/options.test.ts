/** Every `admb COMMAND --option` in the documents exists. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { statusPage } from '../../../scripts/docs/status-page.js'
import { addCommand, commandNames } from '../../../src/cli/commands/index.js'
import { optionsPage } from '../../../src/cli/options/reference.js'
import { simRows } from '../../../src/cli/sim/options.js'
import { featuresPage } from '../../../src/learning/index.js'
import { commandLines, pages, read } from '../../support/documents.js'

/** They add a command; another test runs it. */
const RECIPES = ['docs/guides/recipes.md', 'docs/guides/recipes-layer.md']

const program = new Command('admb')
before(async () => {
  for (const name of commandNames) await addCommand(program, name)
})

/** The error in a command line, if any. */
function fault(line: string): string | undefined {
  let command: Command = program
  let words = line.split(/\s+/)
  for (let found = subcommand(command, words[0]); found !== undefined; found = subcommand(command, words[0])) {
    command = found
    words = words.slice(1)
  }
  // Shell completion is registered on demand.
  if (words[0] === 'complete') return undefined
  if (command === program) return `admb ${line}: there is no such command`
  const options = new Set(command.options.map(({ long }) => long))
  const unknown = words.map(word => /^--[a-z][a-z0-9-]*/.exec(word)?.[0]).filter(word => word && !options.has(word))
  return unknown.length === 0 ? undefined : `admb ${line}: there is no ${unknown.join(', ')}`
}

function subcommand(command: Command, name: string): Command | undefined {
  return command.commands.find(one => one.name() === name)
}

describe('the documents', () => {
  it('use commands and options that exist', () => {
    const lines = pages()
      .filter(page => !RECIPES.includes(page))
      .flatMap(page => commandLines(page).map(line => [page, line] as const))
    assert.ok(lines.length > 60, `${lines.length} commands`)
    const faults = lines.map(([page, line]) => [page, fault(line)]).filter(([, found]) => found !== undefined)
    assert.deepEqual(faults, [])
  })

  it('have commands that a test runs, or say why not', () => {
    const folders = ['test/integration', 'test/e2e', 'test/support']
    const files = folders.flatMap(folder => readdirSync(folder).map(name => join(folder, name)))
    const tests = files
      .filter(file => file.endsWith('.ts'))
      .map(file => readFileSync(file, 'utf8'))
      .join('\n')
    const isTested = (mark: string) =>
      [mark, mark.slice(mark.indexOf(' ') + 1)].some(
        name => tests.includes(`'${name}'`) || tests.includes(`\`${name}\``)
      )
    const untested = pages()
      .filter(page => !page.startsWith('examples') && !RECIPES.includes(page))
      .flatMap(page =>
        [...read(page).matchAll(/(?:^ *<!-- ([^>]+) -->\n+)?^ *```sh$/gm)].map(([, mark]) => [page, mark] as const)
      )
      .filter(([, mark]) => mark === undefined || !(/^not run: \S/.test(mark) || isTested(mark)))
    assert.deepEqual(untested, [])
  })

  it('list all options as the table does', () => {
    assert.equal(read('docs/reference/options.md'), optionsPage(simRows), 'npm run docs writes the page')
  })

  it('list what can be combined as the table does', () => {
    assert.equal(read('docs/reference/combinations.md'), featuresPage(), 'npm run docs writes the page')
  })

  it('list all fields of statuses, and all metrics, as the schemas do', async () => {
    assert.equal(read('docs/reference/status.md'), await statusPage(), 'npm run docs writes the page')
  })
})
