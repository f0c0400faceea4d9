/** Helpers of the network tests: peers on loopback that are stopped afterwards, and waits with a deadline. */
import assert from 'node:assert/strict'
import { generateIdentityKey } from '../../src/network/keys.js'
import { createNetwork, type Network } from '../../src/network/network.js'
import type { NetworkOptions } from '../../src/network/options.js'
import type { Session, SessionHandlers } from '../../src/network/session.js'

export const hello = {
  protocol: 1,
  fields: [
    ['model', 'logistic'],
    ['batch', '512']
  ] as [string, string][]
}
export const timeout = () => AbortSignal.timeout(10_000)

/** Starts and stops peers. `logs` collects their warnings. */
export class Peers {
  readonly logs: string[] = []
  #running: Network[] = []

  async start(options: Partial<NetworkOptions> = {}): Promise<Network> {
    const network = await createNetwork({
      privateKey: await generateIdentityKey(),
      listen: ['/ip4/127.0.0.1/tcp/0'],
      hello,
      maxFrameBytes: 2 ** 27,
      log: (level, message) => {
        if (level === 'warn') this.logs.push(message)
      },
      ...options
    })
    this.#running.push(network)
    return network
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map(network => network.stop()))
    this.#running = []
    this.logs.length = 0
  }
}

export const targetOf = (network: Network) => ({ id: network.id, addresses: network.addresses })

/** A session between two peers, not started at either end. */
export async function openSession(from: Network, to: Network): Promise<[Session, Session]> {
  const inbound = new Promise<Session>(resolve => to.onSession(resolve))
  return [await from.open(targetOf(to), timeout()), await inbound]
}

/** Handlers that record everything. */
export class Recorder implements SessionHandlers {
  readonly controls: Uint8Array[] = []
  readonly statuses: Uint8Array[] = []
  readonly announcements: Uint8Array[] = []
  readonly fragments: Uint8Array[] = []
  readonly frames: Uint8Array[] = []
  readonly closed: Promise<string>
  close!: (reason: string) => void

  constructor() {
    this.closed = new Promise(resolve => {
      this.close = resolve
    })
  }

  control(message: Uint8Array): void {
    this.controls.push(message)
  }

  status(message: Uint8Array): void {
    this.statuses.push(message)
  }

  announcement(message: Uint8Array): void {
    this.announcements.push(message)
  }

  fragment(fragment: Uint8Array): void {
    this.fragments.push(fragment)
  }

  frame(frame: Uint8Array): void | Promise<void> {
    this.frames.push(frame)
  }
}

/** Waits until `condition` holds. Fails after `ms`. */
export async function until(condition: () => boolean, ms = 20_000): Promise<void> {
  const deadline = performance.now() + ms
  while (!condition()) {
    assert.ok(performance.now() < deadline, `not true within ${ms} ms: ${condition}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** Pseudorandom bytes (xorshift32). */
export function pattern(length: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let x = seed || 1
  for (let i = 0; i < length; i++) {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    bytes[i] = x
  }
  return bytes
}
