/** The compiled code that the built command keeps for its next start. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { MAIN } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

describe('the compiled code of a command', () => {
  const folder = scratchFolder()
  const program = join(folder, 'dist/program')
  const cache = join(program, 'cache')
  const home = join(folder, 'home')
  const main = join(program, 'admb.js')

  before(() => {
    const from = dirname(MAIN)
    cpSync(from, program, { recursive: true, filter: path => path !== join(from, 'cache') })
    const root = dirname(dirname(from))
    for (const name of ['package.json', 'node_modules', 'data']) symlinkSync(join(root, name), join(folder, name))
    for (const name of ['src', 'vendor']) symlinkSync(join(root, 'dist', name), join(folder, 'dist', name))
  })
  beforeEach(() => {
    rmSync(cache, { recursive: true, force: true })
    rmSync(home, { recursive: true, force: true })
  })

  function admb(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const { stdout, stderr, status } = spawnSync(process.execPath, [main, ...words], {
      encoding: 'utf8',
      env: { ...process.env, XDG_CACHE_HOME: home, NODE_DISABLE_COMPILE_CACHE: '', ...env }
    })
    assert.equal(status, 0, stderr)
    return stdout
  }
  /** The only file of the folder. */
  function kept(where = cache): string {
    const files = readdirSync(where)
    assert.equal(files.length, 1, files.join())
    return join(where, files[0])
  }
  const help = (env?: NodeJS.ProcessEnv) => admb(['split', '--help'], env)

  it('is written once and a second time when it is complete, and then used', () => {
    const first = help()
    const written = statSync(kept()).ino
    assert.equal(help(), first)
    const complete = statSync(kept()).ino
    assert.notEqual(complete, written)
    for (let run = 0; run < 2; run++) assert.equal(help(), first)
    assert.equal(statSync(kept()).ino, complete)
  })

  it('is whole after processes that started together', async () => {
    const env = { ...process.env, XDG_CACHE_HOME: home, NODE_DISABLE_COMPILE_CACHE: '' }
    const codes = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const child = spawn(process.execPath, [main, 'split', '--help'], { env, stdio: 'ignore' })
        return (await once(child, 'exit'))[0]
      })
    )
    assert.deepEqual(codes, [0, 0, 0, 0, 0, 0])
    // No file is left half written.
    assert.ok(kept())
  })

  it('is replaced if it is damaged', () => {
    const first = help()
    help()
    const file = kept()
    const { length } = readFileSync(file)
    const damages: readonly ((bytes: Buffer) => Buffer)[] = [
      bytes => bytes.subarray(0, length / 2),
      () => Buffer.alloc(0),
      () => Buffer.alloc(length, 0xa5),
      bytes => Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(length - 4096)]),
      bytes => bytes.fill(0x5a, length - 4096)
    ]
    for (const [index, damage] of damages.entries()) {
      const damaged = damage(readFileSync(file))
      writeFileSync(file, damaged)
      assert.equal(help(), first, `damage ${index}`)
      assert.notDeepEqual(readFileSync(file), damaged, `damage ${index}`)
    }
  })

  it('is not used if others can change it', () => {
    if (process.platform === 'win32') return
    help()
    help()
    const { ino } = statSync(kept())
    chmodSync(kept(), 0o666)
    help()
    assert.notEqual(statSync(kept()).ino, ino)
    assert.equal(statSync(kept()).mode & 0o022, 0)
  })

  it("lies in the user's cache folder where the program's folder cannot be written", () => {
    writeFileSync(cache, 'not a folder')
    const first = help()
    assert.ok(kept(join(home, 'admb')))
    assert.equal(help(), first)
  })

  it('is not kept where no folder can be written, or where the user turns it off', () => {
    writeFileSync(cache, 'not a folder')
    writeFileSync(home, 'not a folder')
    help()
    rmSync(cache)
    rmSync(home)
    help({ NODE_DISABLE_COMPILE_CACHE: '1' })
    assert.ok(!existsSync(cache) && !existsSync(home))
  })

  it('serves threads too', () => {
    mkdirSync(home)
    const rows = join(home, 'rows.csv')
    // A thread reads files of at least 32 MiB.
    writeFileSync(rows, `x,label\n${'1.25,0\n2.25,1\n'.repeat(2_400_000)}`)
    // The exit of the thread takes longer than what is left of the command.
    const slow = join(home, 'slow-exit.cjs')
    writeFileSync(
      slow,
      `if (!require('node:worker_threads').isMainThread)
        process.prependListener('exit', () => { for (const end = Date.now() + 500; Date.now() < end; ); })`
    )
    const env = { NODE_OPTIONS: `--require ${slow}` }
    const [first, second] = [1, 2].map(() => JSON.parse(admb(['train', '--data', rows, '--json'], env)).averageLoss)
    assert.ok(Number.isFinite(first))
    assert.equal(second, first)
    const files = readdirSync(cache)
    assert.equal(files.length, 2, files.join())
  })
})
