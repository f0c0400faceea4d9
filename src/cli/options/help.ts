/**
 * Help that fits a screen: `--help` shows the options that most people need, `--help-all` also those for rarer needs.
 */
import { type Command, Help } from 'commander'

/** In place of `--help`. */
export const HELP_ALL = '--help-all'

/** Options by long name that `--help` leaves out. */
export const RARER: ReadonlySet<string> = new Set([
  ...['--labels', '--class-names', '--ignore', '--categorical', '--columns', '--dimension', '--no-constant'],
  ...['--shuffle-window', '--seed', '--limit', '--noise', '--strict'],
  ...['--average', '--l2', '--carry'],
  ...['--target', '--length', '--tokenizer', '--microbatch', '--stash', '--precision', '--workers'],
  ...['--name', '--relay', '--log-level', '--http-origin', '--http-body', '--http-rate']
])

/** For the program and, as they inherit it, its commands. To be called before these are added. */
export function arrangeHelp(program: Command, showsAll: boolean): void {
  const { visibleOptions } = Help.prototype
  program.configureHelp({
    visibleOptions(command) {
      return visibleOptions.call(this, command).filter(({ long }) => showsAll || long === undefined || !RARER.has(long))
    }
  })
  program.addHelpText('afterAll', ({ command }) => {
    const hidden = showsAll ? 0 : command.options.filter(({ long, hidden }) => !hidden && RARER.has(long ?? '')).length
    return hidden === 0 ? '' : `\n${hidden} options for rarer needs: ${nameOf(command)} ${HELP_ALL}`
  })
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}
