/**
 * Completion of what is typed in a shell: `admb complete SHELL` prints a script, which asks `admb complete -- WORDS` at every
 * tab. The library does not tell shells where file names are wanted, so that is done here.
 */
import tab from '@bomb.sh/tab/commander'
import type { Command } from 'commander'
import { print } from '../output/output.js'

/** What tells the script to offer file names. */
const FILE_NAMES = ':0'

/**
 * Adds the command `complete`.
 * @param words what the program was called with
 * @returns whether that was a question to which the answer is file names; it is printed then
 */
export function addCompletion(program: Command, words: readonly string[]): boolean {
  const typed = words.slice(2)
  if (words[0] === 'complete' && words[1] === '--' && wantsFile(program, typed)) {
    print(FILE_NAMES)
    return true
  }
  tab(program)
  const command = program.commands.find(command => command.name() === 'complete')
  command?.description('print what makes a shell complete commands and options: bash, zsh, fish, powershell')
  return false
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
