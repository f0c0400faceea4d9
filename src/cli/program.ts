/** The program `admb`: loads and runs a command, and turns every error into one line and an exit code. */
import { softwareVersion } from '../peer/software.js'
import { addCommand, commandNames, commands, describeCommand } from './commands/index.js'
import { explain, isParsingError } from './errors.js'

/**
 * Runs a command. Its output goes to the standard streams.
 * @param words the command with its arguments
 * @returns the exit code, unless the command has set `process.exitCode`
 */
export async function runProgram(words: readonly string[]): Promise<number> {
  try {
    await perform(words)
    return 0
  } catch (error) {
    const { line, exitCode } = explain(error)
    if (line !== undefined) process.stderr.write(`admb: ${line}\n`)
    return exitCode
  }
}

async function perform(words: readonly string[]): Promise<void> {
  if (words.length === 1 && (words[0] === '--version' || words[0] === '-V')) {
    process.stdout.write(`${softwareVersion()}\n`)
    return
  }
  const { Command } = await import('commander')
  const { arrangeHelp, HELP_ALL } = await import('./options/help.js')
  const program = new Command('admb')
    .description('peers that learn one predictor together, without a master')
    .version(softwareVersion())
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({ outputError: () => undefined })
    .hook('preAction', async (_program, action) => {
      if (action.getOptionValue('config') !== undefined) (await import('./options/config.js')).applyConfig(action)
    })
  // Completion offers every option.
  arrangeHelp(program, words.includes(HELP_ALL) || words[0] === 'complete')
  const asked = words.find(word => Object.hasOwn(commands, word))
  const isCompleting = words[0] === 'complete'
  for (const name of commandNames) {
    // The list of commands needs no options.
    if (isCompleting || name === asked) await addCommand(program, name, words)
    else if (asked === undefined) describeCommand(program.command(name), name)
  }
  if (isCompleting || asked === undefined) {
    if ((await import('./options/completion.js')).addCompletion(program, words)) return
  }
  const plain = words.map(word => (word === HELP_ALL ? '--help' : word))
  try {
    await program.parseAsync(plain, { from: 'user' })
  } catch (error) {
    if (!isParsingError(error)) throw error
    throw await (await import('./options/suggestions.js')).withSuggestion(error, program, words)
  }
}
