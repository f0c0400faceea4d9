/** Options in the documents: whatever `admb COMMAND --option` a page shows, the command has that option. */
import assert from 'node:assert/strict'
import { Command } from 'commander'
import { addCommand, commandNames } from '../../../src/cli/commands/index.js'
import { commandLines, pages } from '../../support/documents.js'

const program = new Command('admb')
before(async () => {
  for (const name of commandNames) await addCommand(program, name)
})

/** What is wrong with a command line; undefined for nothing. */
function fault(line: string): string | undefined {
  let command: Command = program
  let words = line.split(/\s+/)
  for (let found = subcommand(command, words[0]); found !== undefined; found = subcommand(command, words[0])) {
    command = found
    words = words.slice(1)
  }
  // The completion of shells is made when it is asked for.
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
  it('name commands and options that exist', () => {
    const told = pages().flatMap(page => commandLines(page).map(line => [page, line] as const))
    assert.ok(told.length > 60, `${told.length} commands`)
    const faults = told.map(([page, line]) => [page, fault(line)]).filter(([, found]) => found !== undefined)
    assert.deepEqual(faults, [])
  })
})
