/**
 * The commands of the README and of the pages on the simulator, regret and HTTP, run as they stand there: blocks marked `run` one after another, and
 * the two peers of the walk through, both on this machine. A page that promises what does not work costs a new user more than no page.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Commands of a page's blocks with that mark, in order. */
function blocks(mark: string, page = 'README.md'): string[] {
  const pattern = new RegExp(`<!-- ${mark} -->\\n+\`\`\`sh\\n([^]*?)\`\`\``, 'g')
  const found = [...readFileSync(page, 'utf8').matchAll(pattern)].map(match => match[1].trim())
  assert.notEqual(found.length, 0, `${page} has no block marked ${mark}`)
  return found
}

/** Rows that a logistic model can learn something from; the same for the same seed. */
function customers(rows: number, seed: number): string {
  let state = seed
  const random = () => {
    state = (state * 16807) % 2147483647
    return state / 2147483647
  }
  const lines = ['age,income,region,bought']
  for (let row = 0; row < rows; row++) {
    const age = 18 + Math.floor(random() * 60)
    const income = 1000 + Math.floor(random() * 5000)
    const region = ['north', 'south', 'east'][Math.floor(random() * 3)]
    const score = (age - 45) / 10 + (income - 3500) / 1000 + (region === 'east' ? 1 : 0)
    lines.push([age, income, region, random() < 1 / (1 + Math.exp(-score)) ? 'yes' : 'no'].join(','))
  }
  return `${lines.join('\n')}\n`
}

describe('the documents', function () {
  this.timeout(300_000)
  let folder: string
  let env: NodeJS.ProcessEnv

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'admb-readme-'))
    writeFileSync(join(folder, 'mine.csv'), customers(2000, 1))
    writeFileSync(join(folder, 'other.csv'), customers(2000, 2))
    // `npx admb` finds the built command at once, without asking npm.
    const bin = join(folder, 'bin')
    mkdirSync(bin)
    const main = resolve('dist/src/cli/main.js')
    writeFileSync(join(bin, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' '${main}' "$@"\n`, { mode: 0o755 })
    env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` }
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  const run = (commands: string) =>
    execFileSync('bash', ['-euc', commands], { cwd: folder, env, encoding: 'utf8', timeout: 200_000 })

  /** Starts a command that stays. @returns what it prints until it serves HTTP */
  const start = async (peers: ChildProcess[], command: string) => {
    const peer = spawn('bash', ['-c', `exec ${command}`], { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] })
    peers.push(peer)
    let printed = ''
    peer.stdout.on('data', (text: Buffer) => {
      printed += text.toString()
    })
    while (!printed.includes('status at')) {
      assert.equal(peer.exitCode, null, `${command} ended`)
      await sleep(20)
    }
    return printed
  }

  it('have commands that work as written: the README', () => {
    const printed = blocks('run').map(run).join('\n')
    const accuracies = [...printed.matchAll(/accuracy +([\d.]+) %/g)].map(match => Number(match[1]))
    assert.equal(accuracies.length, 3)
    assert.ok(Math.min(...accuracies) > 70, printed)
    assert.match(readFileSync(join(folder, 'allowed.txt'), 'utf8'), /^12D3KooW\w+\n$/)
  })

  it('have commands that work as written: the simulator', () => {
    const printed = blocks('run', 'docs/simulator.md').map(run).join('\n')
    assert.match(printed, /100 runs, no violation/)
    assert.match(printed, /admb-sender .*%/)
  })

  it('have commands that work as written: regret', () => {
    const printed = blocks('run', 'docs/regret.md').map(run)
    const regrets = printed.map(text => Number(/regret {10}([\d.]+) /.exec(text)?.[1]))
    assert.ok(regrets[0] > 0, printed[0])
    assert.equal(regrets[1], regrets[0])
    assert.match(printed[2], /comparator +the best predictor in hindsight/)
  })

  it('have commands that work as written: HTTP', async function () {
    try {
      execFileSync('curl', ['--version'])
    } catch {
      console.log('      curl is not installed: skipped')
      this.skip()
    }
    run(blocks('http token', 'docs/http.md')[0])
    const peers: ChildProcess[] = []
    try {
      const printed = await start(peers, `${blocks('http peer', 'docs/http.md')[0]} --http 0`)
      const port = /status at http:\/\/127.0.0.1:(\d+)/.exec(printed)?.[1]
      const said = run(blocks('http run', 'docs/http.md')[0].replaceAll(':7280', `:${port}`))
      assert.match(said, /"label":"yes"/)
      assert.match(said, /admb_inputs_total \d/)
      assert.ok(readdirSync(folder).some(name => /^admb-logistic-\d+-.*\.safetensors$/.test(name)))
    } finally {
      for (const peer of peers) peer.kill('SIGKILL')
    }
  })

  it('lead to two peers that learn together', async () => {
    const peers: ChildProcess[] = []
    const stop = async (peer: ChildProcess) => {
      const ended = once(peer, 'exit')
      peer.kill('SIGINT')
      assert.deepEqual(await ended, [0, null])
    }
    try {
      const first = await start(peers, blocks('peer A')[0])
      const address = /--peer (\S+)/.exec(first)?.[1] as string
      await start(peers, blocks('peer B')[0].replace(/\/ip4\/192\.0\.2\.7\S+/, address))
      const door = /status at http:\/\/(\S+)\/status/.exec(first)?.[1]
      // Another peer of this machine may have the usual port.
      const status = () => run(`${blocks('status A')[0]} --http ${door}`)
      while (!/neighbours +12D3KooW/.test(status()) || !/adopted +[1-9]/.test(status())) await sleep(100)
      await stop(peers[0])
      await stop(peers[1])
      assert.match(run(blocks('after A')[0]), /accuracy +[5-9]/)
    } finally {
      for (const peer of peers) peer.kill('SIGKILL')
    }
  })
})
