/** Help that fits a screen: `--help` lists the common options, `--help-all` all of them. */
import { type Command, Help, type Option } from 'commander'
import { rowOf } from './option.js'

/** Lists all options. */
export const HELP_ALL = '--help-all'

/** Whether `--help` leaves the option out. */
function isRare(option: Option): boolean {
  return rowOf(option)?.rare ?? false
}

/** Configures the program. Commands that are added afterwards inherit it. */
export function arrangeHelp(program: Command, showsAll: boolean): void {
  const { visibleOptions, formatHelp } = Help.prototype
  // An unknown option is compared with all of them.
  let isShown = false
  program.configureHelp({
    // Rows say their defaults.
    optionDescription: ({ description }) => description,
    visibleOptions(command) {
      const options = visibleOptions.call(this, command)
      return isShown && !showsAll ? options.filter(option => !isRare(option)) : options
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
    const hidden = showsAll ? 0 : command.options.filter(isRare).length
    return hidden === 0 ? '' : `\n${hidden} further option${hidden === 1 ? '' : 's'}: ${nameOf(command)} ${HELP_ALL}`
  })
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}
