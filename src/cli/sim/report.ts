/** `--report DIR`: looked at before the runs, written after them. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { loadWriter, type Report } from '../../../sim/report/index.js'
import { UsageError } from '../errors.js'
import { print } from '../output/output.js'

export interface OpenReport {
  write(report: Omit<Report, 'command'>, flags: { readonly json?: boolean }): Promise<void>
}

/**
 * Makes the folder, so that nothing is run in vain.
 * @returns nothing without a folder
 * @throws UsageError for one that cannot be made
 */
export function openReport(folder: string | undefined): OpenReport | undefined {
  if (folder === undefined) return undefined
  try {
    mkdirSync(join(folder, 'figures'), { recursive: true })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(`--report ${folder}: cannot be made (${code}): give a folder that can be written to`)
  }
  return {
    async write(report, { json }) {
      const writeReport = await loadWriter()
      await writeReport(folder, { ...report, command: commandLine() })
      if (!json) print(`\nreport: ${join(folder, 'index.html')}`)
    }
  }
}

/** The command as it was given, for a shell. */
export function commandLine(words: readonly string[] = process.argv.slice(2)): string {
  return [
    'admb',
    ...words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
  ].join(' ')
}
