/**
 * `npm run test:watch [-- PATTERN]`: rebuilds after each change of the sources, and runs the tests that match the pattern or,
 * without one, those that import what has changed.
 */
import { watch } from 'node:fs'
import { compile, runTests } from './run.js'
import { readSources, SUITES, selectByChange, selectByPattern } from './select.js'

const FOLDERS = ['src', 'sim', 'test', 'scripts']
/** Editors write a file in several steps. */
const QUIET_MS = 100

const pattern = process.argv.slice(2).join(' ')
const changed = new Set<string>()
let isRunning = false
let timer: NodeJS.Timeout | undefined

async function rerun(): Promise<void> {
  if (isRunning || changed.size === 0) return
  isRunning = true
  const files = [...changed]
  changed.clear()
  console.log(`\n${files.join(', ')}`)
  if ((await compile()) === 0) {
    const selection =
      pattern === '' ? selectByChange(files, readSources(FOLDERS)) : selectByPattern(pattern, readSources(SUITES))
    if (selection.files.length === 0) console.log('no test to run')
    else await runTests(selection)
  }
  isRunning = false
  await rerun()
}

for (const folder of FOLDERS) {
  watch(folder, { recursive: true }, (_, name) => {
    if (name === null || !name.endsWith('.ts')) return
    changed.add(`${folder}/${name.replaceAll('\\', '/')}`)
    clearTimeout(timer)
    timer = setTimeout(() => void rerun(), QUIET_MS)
  })
}
console.log(`watching ${FOLDERS.join(', ')}`)
