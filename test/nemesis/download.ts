/**
 * `node dist/test/nemesis/download.js [--sources 3] [--hidden 3000,3000] [--kill PARTS]`: peers with one large predictor serve it to a
 * peer that joins, each over a line of 20 Mbit/s with a round trip of 80 ms. The joining peer is killed after that many parts, and
 * returns. It prints a JSON object: bytes, seconds, and the parts received.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { addressOf, commandAt, insideNamespaces, Lab } from './lab.js'

const MAIN = fileURLToPath(new URL('../../program/admb.js', import.meta.url))
const LINE = { delay: 40, rate: 20e6 / 8 }
/** The line of the joining peer is no bottleneck. */
const FAST = { delay: 40, rate: 100e6 }
const RECEIVED = /received a predictor with \d+ updates: (\d+) bytes in ([\d.]+) s/

const { values } = parseArgs({
  options: {
    sources: { type: 'string', default: '3' },
    hidden: { type: 'string', default: '3000,3000' },
    kill: { type: 'string' }
  }
})
const sources = Number(values.sources)
const folder = mkdtempSync(join(tmpdir(), 'admb-download-'))

function logOf(node: number): string {
  return readFileSync(join(folder, `${node}.log`), 'utf8')
}

/** Waits until a text occurs that many times in the log of a peer. */
async function logged(node: number, text: RegExp, times = 1): Promise<RegExpExecArray> {
  for (;;) {
    const found = [...logOf(node).matchAll(new RegExp(text, 'g'))]
    if (found.length >= times) return found[times - 1]
    await sleep(50)
  }
}

await insideNamespaces(async () => {
  const model = join(folder, 'model.yaml')
  writeFileSync(model, `model: mlp\nhidden: [${values.hidden}]\n`)
  const options = ['--model', model, '--rule', 'momentum', '--backend', 'cpu', '--batch', '64', '--data', 'digits']
  const dir = (node: number) => ['--dir', join(folder, `state-${node}`)]
  const lab = await Lab.create(sources + 1, LINE, 1)
  lab.setLine(FAST, [sources])
  const peer = (node: number, ...more: string[]): ChildProcess => {
    const log = openSync(join(folder, `${node}.log`), 'a')
    const rest = ['--listen', `/ip4/${addressOf(node)}/tcp/4280`, '--rate', '0.01', '--log-level', 'debug']
    const command = [process.execPath, MAIN, 'peer', ...options, ...rest, ...dir(node), ...more]
    const [file, ...args] = commandAt(node, command)
    return spawn(file, args, { stdio: ['ignore', log, log] })
  }
  await once(spawn(process.execPath, [MAIN, 'train', ...options, '--limit', '256', ...dir(0)]), 'exit')
  const peers = [peer(0)]
  const [id] = await logged(0, /12D3\w+/)
  const to = ['--peer', `/ip4/${addressOf(0)}/tcp/4280/p2p/${id}`]
  for (let node = 1; node < sources; node++) {
    peers.push(peer(node, ...to))
    await logged(node, RECEIVED)
  }
  let joining = peer(sources, ...to)
  if (values.kill !== undefined) {
    await logged(sources, /of a predictor has arrived/, Number(values.kill))
    joining.kill('SIGKILL')
    await once(joining, 'exit')
    joining = peer(sources, ...to)
  }
  const [, bytes, seconds] = await logged(sources, RECEIVED)
  const parts = logOf(sources).split('of a predictor has arrived').length - 1
  process.stdout.write(`${JSON.stringify({ sources, bytes: Number(bytes), seconds: Number(seconds), parts })}\n`)
  for (const child of [...peers, joining]) child.kill()
  lab.stop()
})
