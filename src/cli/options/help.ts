/** Help that fits a screen: `--help` lists the common options, `--help-all` all of them. */
import { type Command, Help } from 'commander'

/** Lists all options. */
export const HELP_ALL = '--help-all'

/** Options by long name that `--help` leaves out. */
export const RARER: ReadonlySet<string> = new Set([
  ...['--labels', '--class-names', '--ignore', '--categorical', '--columns', '--text', '--dimension', '--no-constant'],
  ...['--from', '--label-delay', '--classes', '--drift', '--windows'],
  ...['--weight', '--id', '--time', '--class-weights', '--classes-max', '--interactions', '--lag'],
  ...['--delimiter', '--encoding', '--decimal', '--header', '--no-header', '--na'],
  ...['--shuffle-window', '--seed', '--limit', '--noise', '--strict', '--skip-limit'],
  ...['--average', '--l2', '--target-scale', '--carry', '--sums', '--local-steps', '--local-momentum'],
  ...['--target', '--length', '--tokenizer', '--microbatch', '--stash', '--precision', '--workers'],
  ...['--keep-journal', '--store', '--lora', '--freeze', '--name', '--relay', '--network-id', '--log', '--log-level'],
  ...['--trust', '--dp'],
  ...['--accept-invitations', '--invitation'],
  ...['--stun', '--http-origin', '--http-body', '--http-rate', '--http-cert', '--http-key']
])

/** Configures the program. Commands that are added afterwards inherit it. */
export function arrangeHelp(program: Command, showsAll: boolean): void {
  const { visibleOptions, formatHelp } = Help.prototype
  // An unknown option is compared with all of them.
  let isShown = false
  program.configureHelp({
    visibleOptions(command) {
      const options = visibleOptions.call(this, command)
      return isShown && !showsAll ? options.filter(({ long = '' }) => !RARER.has(long)) : options
    },
    formatHelp(command, helper) {
      isShown = true
      try {
        return formatHelp.call(this, command, helper)
      } finally {
        isShown = false
      }
    }
  })
  program.addHelpText('afterAll', ({ command }) => {
    const hidden = showsAll ? 0 : command.options.filter(({ long, hidden }) => !hidden && RARER.has(long ?? '')).length
    return hidden === 0 ? '' : `\n${hidden} further option${hidden === 1 ? '' : 's'}: ${nameOf(command)} ${HELP_ALL}`
  })
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}
