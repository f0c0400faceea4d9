/** The pages of peers in the tutorials, in a real browser. Writes pictures to `artifacts/`. Skipped without Chromium. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join, resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { launchIfFound, open } from '../support/browser.js'
import { blocks } from '../support/documents.js'
import { referenceOf } from '../support/l2l/checkpoints.js'
import { MAIN, PeerProcesses, until } from '../support/peer-processes.js'
import { hasPython, PYTHON } from '../support/python.js'

const ARTIFACTS = 'artifacts'
const WAIT_MS = 90_000

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { readonly port: number }
  await new Promise(done => server.close(done))
  return port
}

describe('the pages of the tutorials', function () {
  this.timeout(300_000)
  const processes = new PeerProcesses()
  const programs: ChildProcess[] = []
  let browser: Browser

  before(async function () {
    browser = (await launchIfFound()) ?? this.skip()
    mkdirSync(ARTIFACTS, { recursive: true })
  })
  afterEach(async () => {
    for (const child of programs.splice(0)) child.kill('SIGKILL')
    await processes.stop()
  })
  after(() => browser?.close())

  /** Opens the page of a peer, waits for its network and for updates, and takes a picture. */
  async function picture(url: string, peers: number, updates: number, name: string): Promise<void> {
    const { page, errors } = await open(browser, url, {
      viewport: { width: 1100, height: 610 },
      reducedMotion: 'reduce'
    })
    const isLinked = async () => (await page.locator('#tree .edge').count()) === peers - 1
    await until('one tree', isLinked, WAIT_MS)
    const made = async () =>
      ((await (await fetch(`${url}/status`)).json()) as { predictor: { updates: number } }).predictor
    await until('updates', async () => (await made()).updates >= updates, WAIT_MS)
    const headline = `${peers} peers follow one predictor`
    await until('one predictor', async () => (await page.locator('h1').textContent()) === headline, WAIT_MS)
    await page.screenshot({ path: join(ARTIFACTS, `${name}.png`) })
    assert.deepEqual(errors, [])
  }

  it('fine-tuning: two peers', async () => {
    const folder = await processes.scratch()
    const { folder: checkpoint, texts = [] } = referenceOf('bert')
    cpSync(checkpoint, join(folder, 'bert'), { recursive: true })
    const rows = Array.from({ length: 32 }, (_, i) => [...texts[i % 4], i % 2 ? 'same' : 'other'])
    const data = join(folder, 'pairs.tsv')
    writeFileSync(data, [['first', 'second', 'relation'], ...rows].map(row => `${row.join('\t')}\n`).join(''))
    const options = ['--weights', join(folder, 'bert'), '--data', data, '--label', 'relation', '--length', '32']
    const learning = ['--passes', '400', '--rule', 'adamw,step=1e-3', '--batch', '8', '--rate', '40']
    const start = (site: number, ...more: string[]) =>
      processes.start(...options, ...learning, '--shard', `${site}/2`, '--name', `site ${site}`, ...more).ready()
    const first = await start(1)
    await start(2, '--peer', first.latest.addresses[0])
    await picture(first.latest.http as string, 2, 60, 'fine-tuning')
  })

  it('PyTorch: three peers', async function () {
    if (!hasPython('torch')) this.skip()
    const folder = await processes.scratch()
    const text = blocks('python learner', 'docs/tutorials/pytorch.md', 'python').join('\n')
    const env = {
      ...process.env,
      ADMB: `${process.execPath} ${MAIN}`,
      OMP_NUM_THREADS: '1',
      PYTHONPATH: [resolve('python'), process.env.PYTHONPATH].filter(Boolean).join(delimiter)
    }
    const port = await freePort()
    const start = async (site: number, ...join: string[]): Promise<string> => {
      const more = `("--http", "${site === 0 ? port : 'off'}", "--listen", "/ip4/127.0.0.1/tcp/0", "--name", "site ${site}")`
      const program = text.replaceAll('join=join', `join=join, options=${more}`)
      const child = spawn(PYTHON, ['-u', '-c', program, String(site), ...join], { cwd: folder, env })
      programs.push(child)
      let output = ''
      child.stdout.on('data', bytes => (output += bytes))
      await until('the address', () => output.includes('/p2p/'), WAIT_MS)
      return (/\/ip4\/127.0.0.1\S+/.exec(output) as RegExpExecArray)[0]
    }
    const address = await start(0)
    await Promise.all([start(1, address), start(2, address)])
    await picture(`http://127.0.0.1:${port}`, 3, 300, 'pytorch')
  })
})
