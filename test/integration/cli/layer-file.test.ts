/** `admb train --store disk`: killed at any time, it continues to the same bits; a full disk loses nothing. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommandResult, MAIN, admb as runAdmb } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

const ROWS = 300
const [PASSES, BATCH] = [2, 3]
const UPDATES = (PASSES * ROWS) / BATCH

/** Runs a command, in a process with this prefix if there is one. */
function admb(args: readonly string[], prefix: readonly string[] = []): Promise<CommandResult> {
  if (prefix.length === 0) return runAdmb(args)
  const [command, ...rest] = [...prefix, process.execPath, MAIN, ...args]
  return new Promise(resolve => {
    execFile(command, rest, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

describe('admb train --store disk', function () {
  this.timeout(240_000)
  const folder = scratchFolder()
  let train: readonly string[]
  before(async () => {
    const data = join(folder, 'rows.csv')
    const row = (i: number) => `${'abc'[i % 3]},${Math.sin(i)},${Math.cos(7 * i)},${(i % 11) / 11}\n`
    await writeFile(data, `label,x,y,z\n${Array.from({ length: ROWS }, (_, i) => row(i)).join('')}`)
    const model = join(folder, 'model.yaml')
    await writeFile(model, 'model: mlp\nhidden: [150, 150, 150, 150]\n')
    const learning = `--rule adam --batch ${BATCH} --backend cpu --schedule l2l-p --shuffle-window 100 --passes ${PASSES}`
    train = ['train', '--data', data, '--label', 'label', '--model', model, ...learning.split(' ')]
  })

  const at = (name: string) => join(folder, name)
  const onDisk = (name: string) => [...train, '--store', 'disk', '--host-memory', '1500KB', '--dir', at(name), '--json']

  async function digestOf(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await admb(args)
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout).predictor.digest
  }

  async function fails(args: readonly string[], message: RegExp, prefix?: readonly string[]): Promise<void> {
    const { code, stderr } = await admb(args, prefix)
    assert.notEqual(code, 0)
    assert.match(stderr, message)
    assert.match(stderr, /^(admb: )?[^\n]+\n([^\n]+\n)?$/)
  }

  it('continues after SIGKILL to the bits of an uninterrupted run in memory', async () => {
    const expected = await digestOf([...train, '--dir', at('memory'), '--json'])
    let kills = 0
    let digest: string | undefined
    while (kills < 3 && digest === undefined) {
      const child = spawn(process.execPath, [MAIN, ...onDisk('killed')], { stdio: ['ignore', 'pipe', 'ignore'] })
      let stdout = ''
      child.stdout.on('data', text => {
        stdout += text
      })
      const ended = new Promise<string | null>(resolve => child.once('close', (_, signal) => resolve(signal)))
      const updates = updatesIn('killed')
      while (updatesIn('killed') === updates && child.exitCode === null) await sleep(5)
      await sleep(37 * kills)
      child.kill('SIGKILL')
      if ((await ended) === 'SIGKILL') kills++
      else digest = JSON.parse(stdout).predictor.digest
    }
    assert.ok(kills > 0)
    // The same command would start again after the last update.
    const isComplete = updatesIn('killed') === UPDATES
    digest ??= await digestOf(
      isComplete ? ['eval', '--dir', at('killed'), '--data', train[2], '--json'] : onDisk('killed')
    )
    assert.equal(digest, expected)
    const scores = async (name: string) => {
      const { stdout, stderr, code } = await admb(['eval', '--dir', at(name), '--data', train[2], '--json'])
      assert.equal(code, 0, stderr)
      const { predictor: _, ...figures } = JSON.parse(stdout)
      return figures
    }
    assert.deepEqual(await scores('killed'), await scores('memory'))
  })

  it('continues after SIGINT to the same bits', async () => {
    const changes: Readonly<Record<string, string>> = { adam: 'adamw,decay=0.3', '1500KB': '2MB' }
    const changed = (args: readonly string[]) => args.map(arg => changes[arg] ?? arg)
    const child = spawn(process.execPath, [MAIN, ...changed(onDisk('stopped'))])
    let stderr = ''
    child.stderr.on('data', text => {
      stderr += text
    })
    const ended = new Promise(resolve => child.once('close', resolve))
    while (updatesIn('stopped') < 1 && child.exitCode === null) await sleep(5)
    child.kill('SIGINT')
    assert.equal(await ended, 1)
    assert.match(
      stderr,
      /stopped by SIGINT before the end; what was learned from .* is stored in .*, and the same command continues/
    )
    assert.equal(await digestOf(changed(onDisk('stopped'))), await digestOf(changed([...train, '--json'])))
  })

  function updatesIn(name: string): number {
    const file = join(at(name), 'layers', 'commit.json')
    return existsSync(file) ? Number(/"updates":(\d+)/.exec(readFileSync(file, 'utf8'))?.[1]) : -1
  }

  it('keeps the last commit when the disk is full', async () => {
    const expected = await digestOf(onDisk('whole'))
    // Writes above the limit fail, as they do on a full disk.
    const bytes = statSync(join(at('whole'), 'layers', 'layers.bin')).size
    const limited = ['bash', '-c', `ulimit -f ${Math.floor(bytes / 1024) - 1}; exec "$0" "$@"`]
    await fails(onDisk('full'), /cannot write the layer file in .*EFBIG.*free some space/, limited)
    assert.equal(await digestOf(onDisk('full')), expected)
  })

  it('is refused in one line where it cannot be used', async () => {
    await digestOf([...onDisk('used'), '--limit', '30'])
    await fails([...onDisk('small'), '--host-memory', '10KB'], /--host-memory 10\.0 kB is too small for the model/)
    await fails([...train, '--host-memory', '1MB'], /--host-memory is for --store disk/)
    await fails([...onDisk('held'), '--holdout', '0.1'], /--store disk keeps one predictor/)
    await fails([...train, '--store', 'disk', '--model', 'softmax'], /--store disk is for networks/)
    await fails([...onDisk('other'), '--rule', 'adamw,clip=1'], /needs a rule that steps layers independently/)
    await fails([...onDisk('used'), '--batch', '4'], /predictor of another model \(batch 3 stored, 4 given\)/)
    await fails(['peer', ...train.slice(1), '--dir', at('used')], /layer file.*admb export/)
  })

  it('moves a predictor from memory to disk and back', async () => {
    const few = [...train, '--json', '--limit', '90', '--dir']
    const inMemory = [...few, at('stays')]
    const moving = (where: string) => [...few, at('moves'), '--store', where]
    for (const where of ['memory', 'disk', 'disk', 'memory']) {
      assert.equal(await digestOf(moving(where)), await digestOf(inMemory))
      assert.equal(existsSync(join(at('moves'), 'layers')), where === 'disk')
    }
  })

  it('names a damaged file', async () => {
    await digestOf([...onDisk('damaged'), '--limit', '30'])
    await truncate(join(at('damaged'), 'layers', 'layers.bin'), 8192)
    await fails(onDisk('damaged'), /layers\.bin has 8192 bytes instead of \d+/)
    await fails(['eval', '--dir', at('damaged'), '--data', train[2]], /layers\.bin has 8192 bytes instead of \d+/)
  })
})
