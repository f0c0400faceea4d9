/** The linter's rules for the pure modules: each planted file violates one of them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { scratchFolder } from '../../support/scratch.js'

const PLANTED: Readonly<Record<string, string>> = {
  'the date': 'export const now = () => Date.now()',
  'a new date': 'export const now = () => new Date()',
  'the clock': 'export const now = () => performance.now()',
  'a timer': 'export const later = (f: () => void) => setTimeout(f, 1)',
  'a repeated timer': 'export const often = (f: () => void) => setInterval(f, 1)',
  'an immediate': 'export const soon = (f: () => void) => setImmediate(f)',
  'a microtask': 'export const soon = (f: () => void) => queueMicrotask(f)',
  randomness: 'export const toss = () => Math.random()',
  'hidden randomness': 'const { random } = Math\nexport const toss = random',
  'cryptographic randomness': 'export const toss = () => crypto.randomUUID()',
  'the process': 'export const home = process.env.HOME',
  'the console': "console.log('here')",
  'the network': "export const get = () => fetch('http://localhost')",
  'a global by its name': 'export const all = globalThis',
  'a file': "import { readFileSync } from 'node:fs'\nexport const read = readFileSync",
  'a socket': "import net from 'node:net'\nexport const open = net.connect",
  'a package': "import { pino } from 'pino'\nexport const log = pino",
  'a late import': "export const late = () => import('node:fs')",
  'another module': "import { zeros } from '../../learner/index.js'\nexport const none = zeros",
  'a promise': 'export const none = Promise.resolve()',
  'an asynchronous function': 'export async function later() {}',
  'an asynchronous arrow': 'export const later = async () => 1',
  'an asynchronous method': 'export class Node {\n  private async later() {}\n}',
  'an asynchronous generator': 'export const all = { async *later() {} }',
  'an asynchronous loop': 'export function f(x) { for await (const y of x) y() }',
  waiting: 'export const value = await late'
}
const INNOCENT =
  "import type { Blocks } from '../../learning/types.js'\nexport const sizes = (blocks: Blocks) => blocks.length\n"

describe('purity of the state machines', () => {
  const root = scratchFolder()
  let errors: string[]

  before(() => {
    for (const folder of ['scripts', 'src/admb/core', 'src/cli']) mkdirSync(join(root, folder), { recursive: true })
    for (const file of ['biome.json', 'scripts/no-async.grit']) copyFileSync(resolve(file), join(root, file))
    for (const [name, text] of Object.entries(PLANTED)) writeFileSync(join(root, planted(name)), `${text}\n`)
    writeFileSync(join(root, 'src/admb/core/innocent.ts'), INNOCENT)
    writeFileSync(join(root, 'src/cli/clock.ts'), 'export const now = () => Date.now()\n')
    const biome = resolve('node_modules/@biomejs/biome/bin/biome')
    const args = [biome, 'lint', '--reporter=github', '--max-diagnostics=none', 'src']
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
    errors = `${stdout}${stderr}`.split('\n').filter(line => line.startsWith('::error'))
  })

  for (const name of Object.keys(PLANTED)) {
    it(`rejects ${name}`, () => {
      const found = errors.filter(line => line.includes(planted(name)))
      assert.match(
        found.join('\n'),
        /noRestrictedGlobals|noRestrictedImports|noJsRestrictedProperties|plugin/,
        'no rule found it'
      )
    })
  }

  it('accepts pure code, and clocks in other modules', () => {
    assert.deepEqual(
      errors.filter(line => /innocent\.ts|src\/cli/.test(line)),
      []
    )
  })
})

function planted(name: string): string {
  return `src/admb/core/${name.replaceAll(' ', '-')}.ts`
}
