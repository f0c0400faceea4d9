/** Adds commands: their options are the rows that name them. */
import type { Argument, Command } from 'commander'
import { addRows, type Row } from './option.js'
import { rows } from './table.js'

interface Details {
  /** What follows the options in the help: notes and examples. */
  readonly help?: string
  /** Summary of a command within a group; `index.ts` describes the others. */
  readonly summary?: string
  readonly arguments?: readonly Argument[]
  /** @default the table */
  readonly rows?: readonly Row[]
}

/**
 * @param name as rows name it: the last word is that of the command within its parent
 * @param action receives the arguments and the flags
 */
export function add<Words extends unknown[]>(
  parent: Command,
  name: string,
  { help, summary, arguments: words = [], rows: own = rows }: Details,
  action: (...words: Words) => Promise<void> | void
): Command {
  const command = parent.command(name.split(' ').at(-1) as string)
  for (const argument of words) command.addArgument(argument)
  if (summary !== undefined) command.description(summary)
  if (help !== undefined) command.addHelpText('after', `\n${help}`)
  return addRows(command, name, own).action((...given: unknown[]) => action(...(given as Words)))
}
