/** Real peer processes for the tests: started, listened to, killed; none of them, nor their directories, stays behind. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { PeerStatus } from '../../src/peer/index.js'

export const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))

export interface PeerObject extends PeerStatus {
  readonly addresses: readonly string[]
  readonly http?: string
}

export interface LogLine {
  readonly level: string
  readonly msg: string
}

/** Waits until something is true. Fails with `what` after `ms`: generous, for a machine that does other things too. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
  const limit = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > limit) assert.fail(`waited ${ms / 1000} s in vain: ${what}`)
    await sleep(20)
  }
}

export class PeerProcess {
  /** Its JSON objects, in order, and when they came, in milliseconds. */
  readonly said: { readonly at: number; readonly object: PeerObject }[] = []
  /** Lines on stdout that are no JSON. */
  readonly strayLines: string[] = []
  readonly exit: Promise<number | string>
  stderr = ''
  readonly child: ChildProcess

  constructor(args: readonly string[], onObject: (object: PeerObject) => void) {
    // The channel ends the process with the tests, whatever becomes of them.
    const stdio = ['pipe', 'pipe', 'pipe', 'ipc'] as const
    const child = spawn(process.execPath, [MAIN, 'peer', '--json', ...args], { stdio: [...stdio] })
    this.child = child
    child.stderr?.on('data', (text: Buffer) => {
      this.stderr += text
    })
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', line => {
      if (!line.startsWith('{')) this.strayLines.push(line)
      else {
        const object = JSON.parse(line) as PeerObject
        this.said.push({ at: performance.now(), object })
        onObject(object)
      }
    })
    this.exit = new Promise(resolve => child.once('close', (code, signal) => resolve(code ?? (signal as string))))
  }

  get latest(): PeerObject {
    const last = this.said.at(-1)
    assert.ok(last, `the peer has said nothing yet: ${this.stderr}`)
    return last.object
  }

  get logs(): LogLine[] {
    const lines = this.stderr.split('\n').filter(line => line.startsWith('{'))
    return lines.map(line => JSON.parse(line) as LogLine)
  }

  /** Its status now, over HTTP. */
  async ask(): Promise<PeerObject> {
    const response = await fetch(`${this.latest.http}/status`)
    return (await response.json()) as PeerObject
  }

  /** Waits for its first word. */
  async up(): Promise<this> {
    let ended: number | string | undefined
    void this.exit.then(code => {
      ended = code
    })
    await until('a peer says something', () => {
      assert.equal(ended, undefined, `the peer ended: ${this.stderr}`)
      return this.said.length > 0
    })
    return this
  }

  /** Sends a signal and waits for the end. */
  end(signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL' = 'SIGTERM'): Promise<number | string> {
    this.child.kill(signal)
    return this.exit
  }

  /** Cuts it off from those peers; from nobody if there are none. */
  block(...ids: string[]): void {
    this.child.send({ block: ids })
  }
}

/** What peers can learn: every promise holds for all of it. */
export const LEARNERS = ['a convex model', 'a network'] as const
export type LearnerKind = (typeof LEARNERS)[number]

/** All processes of a test. */
export class Processes {
  /** What anyone said of a predictor's content, by its name. One name must stand for one content. */
  readonly digests = new Map<string, Set<string>>()
  #started: PeerProcess[] = []
  #scratch: string | undefined

  /** A directory for the test, gone after it. */
  async scratch(): Promise<string> {
    this.#scratch ??= await mkdtemp(join(tmpdir(), 'admb-test-'))
    return this.#scratch
  }

  /** Options for a learner of that kind: a network is executed layer to layer, in the way for large ones. */
  async modelOf(kind: LearnerKind): Promise<string[]> {
    if (kind === 'a convex model') return []
    const file = join(await this.scratch(), 'small.yaml')
    await writeFile(file, 'model: mlp\nhidden: [24, 12]\n')
    return ['--model', file, '--schedule', 'l2l-p', '--microbatch', '8', '--stash', 'host']
  }

  /** Starts `admb peer` on loopback, with a free port for each of its servers. */
  start(...args: string[]): PeerProcess {
    const given = (name: string, value: string) => (args.includes(name) ? [] : [name, value])
    const own = [...given('--listen', '/ip4/127.0.0.1/tcp/0'), ...given('--http', '127.0.0.1:0')]
    const peer = new PeerProcess([...own, ...args], object => this.note(object))
    this.#started.push(peer)
    return peer
  }

  note({ predictor }: PeerObject): void {
    if (predictor.updates === 0) return
    const name = `${predictor.updates}@${predictor.origin}#${predictor.incarnation}`
    this.digests.set(name, (this.digests.get(name) ?? new Set()).add(predictor.digest))
  }

  /** Names that stood for more than one content. */
  get equivocations(): string[] {
    return [...this.digests].filter(([, digests]) => digests.size > 1).map(([name]) => name)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#started.map(peer => peer.end('SIGKILL')))
    this.#started = []
    this.digests.clear()
    if (this.#scratch !== undefined) await rm(this.#scratch, { recursive: true, force: true })
    this.#scratch = undefined
  }
}

/** Whether all hold the same predictor by their last words. */
export function agree(peers: readonly PeerProcess[]): boolean {
  const contents = peers.map(peer => peer.said.at(-1)?.object.predictor.digest)
  return contents.every(content => content !== undefined && content === contents[0])
}
