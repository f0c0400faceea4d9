/**
 * Detects live peers that share an identity, for example after a state directory was copied: new statuses of a run arrive after
 * those of a newer run. A run that has ended publishes no new statuses, although old ones can arrive late.
 */
import type { NetworkStatus } from './status.js'

/** Number of statuses, each newer than the one before, and the time that they must span by either clock, in ms. */
const STATUSES = 4
const SPAN_MS = 3000
/** They count as live until this long after the last such status, in ms, plus some status intervals. */
const LIVE_MS = 10_000
const LIVE_INTERVALS = 3

interface Twin {
  readonly run: string
  readonly since: number
  readonly firstUptime: number
  last: NetworkStatus
  lastAt: number
  statuses: number
  isDetected: boolean
}

export class TwinDetector {
  readonly #twins = new Map<string, Twin>()

  /**
   * A status of another run than the newest one arrived.
   * @returns whether two live peers were detected for the first time
   */
  receive(id: string, status: NetworkStatus, now: number): boolean {
    const run = runOf(status)
    const twin = this.#twins.get(id)
    if (twin?.run !== run || this.#isOver(twin, now)) {
      const firstUptime = status.uptime
      this.#twins.set(id, { run, since: now, firstUptime, last: status, lastAt: now, statuses: 1, isDetected: false })
      return false
    }
    if (status.uptime <= twin.last.uptime) return false
    twin.last = status
    twin.lastAt = now
    twin.statuses++
    const span = Math.min(now - twin.since, 1000 * (status.uptime - twin.firstUptime))
    if (twin.isDetected || twin.statuses < STATUSES || span < SPAN_MS) return false
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

/** Identifies the run of a status. */
export function runOf({ incarnation, nonce, started }: NetworkStatus): string {
  return `${incarnation} ${nonce ?? 0} ${started}`
}
