/**
 * Detects live peers that share an identity, for example after a state directory was copied: new messages of a run arrive after
 * those of a newer run. A run that has ended publishes no new ones, although old ones can arrive late.
 */
import * as z from 'zod'
import { type NetworkStatus, StatusError } from './status.js'

/** A run of a peer, by a status or by gossip. `interval`: approximate time until its next message, in ms. */
export type Run = Pick<NetworkStatus, 'incarnation' | 'nonce' | 'started' | 'uptime' | 'interval'>

const number = z.number().min(0).max(Number.MAX_SAFE_INTEGER)
const schema = z.object({
  incarnation: number,
  nonce: number,
  started: number,
  uptime: number,
  interval: number.max(1e9),
  /** The runs of this peer should announce themselves, because there may be two. */
  doubt: z.string().max(64).optional(),
  /** Addresses at which tabs can dial the peer. */
  addresses: z.array(z.string().max(255)).max(4).readonly().optional()
})

/** What a peer gossips about its run. */
export type RunMessage = Readonly<z.infer<typeof schema>>

/** JSON in UTF-8. */
export function encodeRun(run: RunMessage): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(run))
}

/** @throws StatusError */
export function decodeRun(bytes: Uint8Array): RunMessage {
  try {
    return schema.parse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch {
    throw new StatusError('the announcement of a run is malformed')
  }
}

/** Number of messages, each newer than the one before, and the time that they must span by either clock, in ms. */
const MESSAGES = 4
const SPAN_MS = 3000
/** They count as live until this long after the last such message, in ms, plus some of its intervals. */
const LIVE_MS = 10_000
const LIVE_INTERVALS = 3

interface Twin {
  readonly run: string
  readonly since: number
  readonly firstUptime: number
  last: Run
  lastAt: number
  messages: number
  isDetected: boolean
}

export class TwinDetector {
  readonly #twins = new Map<string, Twin>()

  /**
   * A message of another run than the newest one arrived.
   * @returns whether two live peers were detected for the first time
   */
  receive(id: string, given: Run, now: number): boolean {
    const run = runOf(given)
    const twin = this.#twins.get(id)
    if (twin?.run !== run || this.#isOver(twin, now)) {
      const firstUptime = given.uptime
      this.#twins.set(id, { run, since: now, firstUptime, last: given, lastAt: now, messages: 1, isDetected: false })
      return false
    }
    if (given.uptime <= twin.last.uptime) return false
    twin.last = given
    twin.lastAt = now
    twin.messages++
    const span = Math.min(now - twin.since, 1000 * (given.uptime - twin.firstUptime))
    if (twin.isDetected || twin.messages < MESSAGES || span < SPAN_MS) return false
    twin.isDetected = true
    return true
  }

  /** Whether two peers with that identity are live. */
  has(id: string): boolean {
    return this.#twins.get(id)?.isDetected ?? false
  }

  /** Removes peers that are no longer live. @returns the ids of those that were detected */
  expire(now: number): string[] {
    const ended: string[] = []
    for (const [id, twin] of this.#twins) {
      if (!this.#isOver(twin, now)) continue
      this.#twins.delete(id)
      if (twin.isDetected) ended.push(id)
    }
    return ended
  }

  #isOver({ last, lastAt }: Twin, now: number): boolean {
    return now - lastAt > LIVE_MS + LIVE_INTERVALS * last.interval
  }
}

/** Identifies a run. */
export function runOf({ incarnation, nonce, started }: Run): string {
  return `${incarnation} ${nonce ?? 0} ${started}`
}
