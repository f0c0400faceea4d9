/** `--report DIR`: the directory is created before the runs, the report is written after them. */
import { join } from 'node:path'
import { loadWriter, type Report } from '../../../sim/report/index.js'
import { fileProblem } from '../../base/errors.js'
import { makeFolder } from '../../base/files.js'
import { UsageError } from '../errors.js'
import { print } from '../output/output.js'

export interface OpenReport {
  write(report: Omit<Report, 'command'>, flags: { readonly json?: boolean }): Promise<void>
}

/**
 * Creates the directory before the runs, so that a failure does not waste them.
 * @returns undefined without a directory
 * @throws UsageError if it cannot be created
 */
export function openReport(folder: string | undefined): OpenReport | undefined {
  if (folder === undefined) return undefined
  try {
    makeFolder(join(folder, 'figures'))
  } catch (error) {
    throw new UsageError(`--report: cannot create ${folder} (${fileProblem(error)})`)
  }
  return {
    async write(report, { json }) {
      const writeReport = await loadWriter()
      await writeReport(folder, { ...report, command: commandLine() })
      if (!json) print(`\nreport: ${join(folder, 'index.html')}`)
    }
  }
}

/** The command line, quoted for a shell. */
export function commandLine(words: readonly string[] = process.argv.slice(2)): string {
  return [
    'admb',
    ...words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
  ].join(' ')
}
