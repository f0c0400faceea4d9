/** The command line that trains with the options that were found. */

/** Options of `admb tune` that `admb train` does not have, or that it found; the last ones take no value. */
const LEFT_OUT = ['--budget', '--candidates', '--threads', '--top', '--out', '--rule', '--average', '--batch']
const WITHOUT_VALUE = ['--json']

/**
 * @param given words of the command line, from the command's name
 * @param found words to add
 */
export function commandLine(given: readonly string[], found: readonly string[]): string {
  const kept: string[] = []
  for (let i = 1; i < given.length; i++) {
    const word = given[i]
    if (WITHOUT_VALUE.includes(word) || LEFT_OUT.some(option => word.startsWith(`${option}=`))) continue
    if (LEFT_OUT.includes(word)) i++
    else kept.push(word)
  }
  return ['admb', 'train', ...kept, ...found].map(quoted).join(' ')
}

/** Quotes a word for a POSIX shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
