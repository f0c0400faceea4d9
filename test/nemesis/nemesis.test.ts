/** Short seeded runs of `npm run nemesis`. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Round } from './campaign.js'
import { obstacle } from './lab.js'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))

/** Runs it and prints its table. @returns the rounds that it reports */
async function run(...args: string[]): Promise<Round[]> {
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

describe('real peers on an emulated network', function () {
  this.timeout(600_000)

  before(function () {
    const reason = obstacle()
    if (reason === undefined) return
    console.log(`      skipped: ${reason}`)
    this.skip()
  })

  it('agree after each kind of fault', async () => {
    const rounds = await run('--peers', '5', '--models', '300', '--lines', 'lan', '--rounds', '18', '--seconds', '2,4')
    assert.ok(rounds.length >= 16)
    const audited = rounds.reduce((sum, round) => sum + (round.audited ?? 0), 0)
    assert.ok(audited > 1000, `the audit found only ${audited} inputs`)
    const lostLinks = rounds.reduce((sum, round) => sum + round.lostLinks, 0)
    assert.ok(lostLinks > 10, `the faults ended only ${lostLinks} links`)
  })

  it('agree on 10^6 parameters over lines of 10 Mbit/s', async () => {
    const faults = ['--nemeses', 'partition,kill,churn', '--rounds', '3', '--seconds', '5']
    const rounds = await run('--peers', '4', '--models', '1M', '--lines', 'dsl', ...faults)
    assert.equal(rounds.length, 3)
  })

  it('agree beside hostile peers, and name them', async () => {
    const kinds = ['unbounded', 'forged-predictor', 'equivocation', 'replayed-signatures', 'withholding', 'label-flip']
    const hostile = ['--nemeses', kinds.join(','), '--influence', 'bounded', '--rounds', `${kinds.length}`]
    const rounds = await run('--peers', '4', '--models', '300', '--lines', 'lan', '--seconds', '2', ...hostile)
    assert.deepEqual(rounds.map(({ nemesis }) => nemesis).sort(), kinds.sort())
    assert.ok((rounds.at(-1)?.audited ?? 0) > 1000)
  })
})
