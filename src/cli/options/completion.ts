/**
 * Shell completion: `admb complete SHELL` prints a script, which runs `admb complete -- WORDS` at every tab. The library does not
 * complete file names, so that is done here.
 */
import tab from '@bomb.sh/tab/commander'
import type { Command } from 'commander'
import { print } from '../output/output.js'
import type { Completed } from './values.js'

/** The directive that makes the script complete file names. */
const FILE_NAMES = ':0'

/**
 * Adds the command `complete`.
 * @param words the program's arguments
 * @returns whether a file name is being completed; the directive is then printed
 */
export function addCompletion(program: Command, words: readonly string[]): boolean {
  const typed = words.slice(2)
  if (words[0] === 'complete' && words[1] === '--' && wantsFile(program, typed)) {
    print(FILE_NAMES)
    return true
  }
  addWords(program)
  tab(program)
  const command = program.commands.find(command => command.name() === 'complete')
  command?.description('print a completion script for bash, zsh, fish or powershell')
  return false
}

/** Offers the values of options and arguments that have no fixed choices, as files are possible as well. */
function addWords(command: Command): void {
  for (const value of [...command.options, ...command.registeredArguments]) {
    const { words } = (value.parseArg ?? {}) as Partial<Completed<unknown>>
    if (words !== undefined) value.argChoices ??= [...words]
  }
  for (const inner of command.commands) addWords(inner)
}

/** Whether the word before the last is an option that takes a file or folder. */
function wantsFile(program: Command, typed: readonly string[]): boolean {
  let command = program
  for (const word of typed.slice(0, -1)) command = command.commands.find(inner => inner.name() === word) ?? command
  const before = typed.at(-2)
  const option = command.options.find(
    ({ long, short }) => before !== undefined && (before === long || before === short)
  )
  return option !== undefined && /<(\w*file|dir)/i.test(option.flags)
}
