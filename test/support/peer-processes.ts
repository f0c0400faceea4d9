/** Peer processes for the tests, which are killed after the test, and whose directories are removed. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PeerStatus } from '../../src/peer/index.js'
import { MAIN } from './admb-command.js'

export { MAIN }

export interface PeerMessage extends PeerStatus {
  readonly addresses: readonly string[]
  readonly http?: string
}

export interface LogLine {
  readonly level: string
  readonly msg: string
}

/** Waits until the condition is true. Fails with `what` after `ms`. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, ms = 50_000): Promise<void> {
  const limit = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > limit) assert.fail(`timed out after ${ms / 1000} s: ${what}`)
    await sleep(20)
  }
}

export class PeerProcess {
  /** JSON objects on stdout, in order, with the time of their arrival in milliseconds. */
  readonly messages: { readonly at: number; readonly object: PeerMessage }[] = []
  /** Lines on stdout that are not JSON. */
  readonly strayLines: string[] = []
  readonly exit: Promise<number | string>
  stderr = ''
  readonly child: ChildProcess

  /** @param within gives the command line that runs another one elsewhere @default here */
  constructor(
    args: readonly string[],
    onObject: (object: PeerMessage) => void = () => {},
    within = (command: readonly string[]) => command
  ) {
    // The IPC channel ends the process if the test process ends.
    const stdio = ['pipe', 'pipe', 'pipe', 'ipc'] as const
    const [file, ...rest] = within([process.execPath, MAIN, 'peer', '--json', ...args])
    const child = spawn(file, rest, { stdio: [...stdio] })
    this.child = child
    child.stderr?.on('data', (text: Buffer) => {
      this.stderr += text
    })
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', line => {
      if (!line.startsWith('{')) this.strayLines.push(line)
      else {
        const object = JSON.parse(line) as PeerMessage
        this.messages.push({ at: performance.now(), object })
        onObject(object)
      }
    })
    this.exit = new Promise(resolve => child.once('close', (code, signal) => resolve(code ?? (signal as string))))
  }

  get latest(): PeerMessage {
    const last = this.messages.at(-1)
    assert.ok(last, `the peer has printed nothing yet: ${this.stderr}`)
    return last.object
  }

  get logs(): LogLine[] {
    const lines = this.stderr.split('\n').filter(line => line.startsWith('{'))
    return lines.map(line => JSON.parse(line) as LogLine)
  }

  /** Requests its current status over HTTP. */
  async fetchStatus(): Promise<PeerMessage> {
    const response = await fetch(`${this.latest.http}/status`)
    return (await response.json()) as PeerMessage
  }

  /** Waits for its first message. */
  async ready(): Promise<this> {
    let ended: number | string | undefined
    void this.exit.then(code => {
      ended = code
    })
    await until('the first message of a peer', () => {
      assert.equal(ended, undefined, `the peer ended: ${this.stderr}`)
      return this.messages.length > 0
    })
    return this
  }

  /** Sends a signal and waits for the exit. */
  stop(signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL' = 'SIGTERM'): Promise<number | string> {
    this.child.kill(signal)
    return this.exit
  }

  /** Blocks connections with these peers; unblocks all if there are none. */
  block(...ids: string[]): void {
    this.child.send({ block: ids })
  }
}

/** Kinds of models, each of which the tests of peers cover. */
export const LEARNERS = ['a convex model', 'a network'] as const
export type LearnerKind = (typeof LEARNERS)[number]

/** All processes of a test. */
export class PeerProcesses {
  /** Digests that peers reported, by updates, origin and incarnation. There must be one for each. */
  readonly digests = new Map<string, Set<string>>()
  #started: PeerProcess[] = []
  #scratch: string | undefined

  /** A directory that is removed after the test. */
  async scratch(): Promise<string> {
    this.#scratch ??= await mkdtemp(join(tmpdir(), 'admb-test-'))
    return this.#scratch
  }

  /** Options for a model of that kind. A network is executed layer to layer, as if it were large. */
  async modelOptions(kind: LearnerKind): Promise<string[]> {
    if (kind === 'a convex model') return []
    const file = join(await this.scratch(), 'small.yaml')
    await writeFile(file, 'model: mlp\nhidden: [24, 12]\n')
    return ['--model', file, '--schedule', 'l2l-p,microbatch=8,stash=host']
  }

  /** Starts `admb peer` on loopback, with free ports. */
  start(...args: string[]): PeerProcess {
    const given = (name: string, value: string) => (args.includes(name) ? [] : [name, value])
    const defaults = [...given('--listen', '/ip4/127.0.0.1/tcp/0'), '--http', '127.0.0.1:0']
    const peer = new PeerProcess([...defaults, ...args], object => this.recordDigest(object))
    this.#started.push(peer)
    return peer
  }

  recordDigest({ predictor }: PeerMessage): void {
    if (predictor.updates === 0) return
    const name = `${predictor.updates}@${predictor.origin}#${predictor.incarnation}`
    this.digests.set(name, (this.digests.get(name) ?? new Set()).add(predictor.digest))
  }

  /** Predictors with more than one digest. */
  get equivocations(): string[] {
    return [...this.digests].filter(([, digests]) => digests.size > 1).map(([name]) => name)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#started.map(peer => peer.stop('SIGKILL')))
    this.#started = []
    this.digests.clear()
    if (this.#scratch !== undefined) await rm(this.#scratch, { recursive: true, force: true })
    this.#scratch = undefined
  }
}

/** Whether the last messages of all peers have the same predictor. */
export function agree(peers: readonly PeerProcess[]): boolean {
  const contents = peers.map(peer => peer.messages.at(-1)?.object.predictor.digest)
  return contents.every(content => content !== undefined && content === contents[0])
}
