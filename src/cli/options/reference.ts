/** The page of all options, which `npm run docs` writes from the table. */
import { GROUPS, helpOf, type Row } from './option.js'

/** Markdown: a table for each group, with a row for each option. */
export function optionsPage(rows: readonly Row[]): string {
  const tables = GROUPS.map(group => {
    const own = rows.filter(row => row.group === group)
    return `## ${group}\n\n| option | meaning | commands |\n| --- | --- | --- |\n${own.map(lineOf).join('')}`
  })
  return `${HEAD}${tables.join('\n')}`
}

const HEAD = `# Options

All options of all commands, by the headings of \`--help\`. Options in _italics_ are listed only by \`--help-all\`. The names, without
dashes, are also the keys of files for \`--config\`. \`npm run docs\` writes this page.

`

function lineOf(row: Row): string {
  const option = `\`--${row.name}${row.unit === undefined ? '' : ` ${row.unit}`}\``
  const commands = row.name === 'json' || row.name === 'config' ? 'all' : row.for.join(', ')
  return `| ${row.rare ? `_${option}_` : option} | ${helpOf(row).replaceAll('|', '\\|')} | ${commands} |\n`
}
