/** `npm run test:one -- PATTERN`: the tests whose path, title or source contains the pattern. */
import { runTests } from './run.js'
import { readSources, SUITES, selectByPattern } from './select.js'

const pattern = process.argv.slice(2).join(' ')
const selection = selectByPattern(pattern, readSources(SUITES))
if (pattern === '') {
  console.error('usage: npm run test:one -- PATTERN, part of a path, title or source text of tests')
  process.exitCode = 2
} else if (selection.files.length === 0) {
  console.error(
    `no test matches '${pattern}'; expected part of a path, title or source text below ${SUITES.join(', ')}`
  )
  process.exitCode = 2
} else {
  process.exitCode = await runTests(selection)
}
