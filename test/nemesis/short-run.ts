/** Short seeded runs of `npm run nemesis`, for the tests. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Context } from 'mocha'
import type { Round } from './campaign.js'
import { obstacle } from './lab.js'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))

/** Runs it and prints its table. @returns the rounds that it reports */
export async function run(...args: string[]): Promise<Round[]> {
  const child = spawn(process.execPath, [MAIN, '--json', '--seed', '1', ...args], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  let output = ''
  child.stdout.on('data', (text: Buffer) => {
    output += text
  })
  const [code] = await once(child, 'close')
  const rounds = output.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line) as Round] : []))
  console.table(
    rounds.map(({ nemesis, model, line, seconds, lostLinks, agreement, bound }) => {
      return {
        nemesis,
        model,
        line,
        seconds: rounded(seconds),
        lostLinks,
        agreement: rounded(agreement),
        bound: rounded(bound)
      }
    })
  )
  assert.deepEqual(
    rounds.flatMap(round => round.failures),
    []
  )
  assert.equal(code, 0, output)
  return rounds
}

const rounded = (value: number) => Math.round(10 * value) / 10

/** Skips the tests of a suite where there are no network namespaces, and says why. */
export function needsNamespaces(this: Context): void {
  const reason = obstacle()
  if (reason === undefined) return
  console.log(`      skipped: ${reason}`)
  this.skip()
}
