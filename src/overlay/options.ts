/**
 * What an overlay node can be told at its start, with defaults, units and checks in one place.
 */
import { CodedError } from '../base/errors.js'
import type { PeerKey } from './label.js'
import { isPlainText, MAX_ADDRESS_LENGTH, MAX_ADDRESSES, MAX_KEY_LENGTH } from './wire.js'

/** An option of `OverlayNode` is out of range. */
export class OverlayOptionError extends CodedError {
  static override readonly code = 'ERR_OVERLAY_OPTION'
}

/** All in milliseconds. */
export interface OverlayTimers {
  /** Between heartbeats of an edge, ± 10 %. Default 1000. */
  readonly heartbeat: number
  /** Silence after which a neighbour counts as dead; keep it above the 99th percentile of the round trip. Default 4000. */
  readonly dead: number
  /** Limit of one step of a join (dial, JOIN, answer). Default 4000. */
  readonly join: number
  /** Between beacons of a root, ± 50 %; what a beacon says is believed for three of these. Default 2000. */
  readonly beacon: number
  /** First wait before a peer is dialled again after a failure; doubles each time. Default 200. */
  readonly backoffMin: number
  /** Longest such wait. Default 8000. */
  readonly backoffMax: number
  /** Longest time for which a peer that lied, or accepted and dropped us, is left alone. Default 60000. */
  readonly banMax: number
  /** Least time between two voluntary moves of this node. Default 10000. */
  readonly moveHold: number
}

export interface OverlayLimits {
  /** Peers remembered for joining. Default 256. */
  readonly knownPeers: number
  /** Inbound sessions that have not yet sent their JOIN. Default 32. */
  readonly inbound: number
  /** Redirects followed in one join. Default 40. */
  readonly hops: number
}

export interface OverlayOptions {
  /** This peer's key: printable ASCII, at most 128 characters. */
  readonly self: PeerKey
  /** Where this peer can be dialled: at most 8 of at most 255 characters. Default none. See `setAddresses`. */
  readonly addresses?: readonly string[]
  /**
   * Most tree neighbours, ≥ 2. Default 4: one parent and three children. With 2 the tree is a path rooted at one end,
   * and its depth limit of 255 is then a limit on the number of peers.
   */
  readonly degree?: number
  /** Uniform in [0, 1), for jitter only; seed it for replays. */
  readonly random: () => number
  /** The time of the start: ms since the Unix epoch, from there on increasing monotonically. All `now` are of this kind. */
  readonly now: number
  readonly timers?: Partial<OverlayTimers>
  readonly limits?: Partial<OverlayLimits>
}

export const DEFAULT_TIMERS: OverlayTimers = {
  heartbeat: 1000,
  dead: 4000,
  join: 4000,
  beacon: 2000,
  backoffMin: 200,
  backoffMax: 8000,
  banMax: 60_000,
  moveHold: 10_000
}

export const DEFAULT_LIMITS: OverlayLimits = { knownPeers: 256, inbound: 32, hops: 40 }

/** Options with every default filled in. */
export interface OverlaySettings {
  readonly self: PeerKey
  readonly degree: number
  readonly random: () => number
  readonly timers: OverlayTimers
  readonly limits: OverlayLimits
}

/** @throws {OverlayOptionError} naming the first option that is out of range. */
export function applyDefaults(options: OverlayOptions): OverlaySettings {
  const { self, degree = 4, random } = options
  const timers = { ...DEFAULT_TIMERS, ...options.timers }
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  if (!isPlainText(self, MAX_KEY_LENGTH)) {
    throw new OverlayOptionError(`self must be 1 to ${MAX_KEY_LENGTH} printable ASCII characters`)
  }
  if (!Number.isInteger(degree) || degree < 2 || degree > 255) {
    throw new OverlayOptionError(`degree must be a whole number from 2 to 255, not ${degree}`)
  }
  if (!Number.isFinite(options.now) || options.now < 0) {
    throw new OverlayOptionError(`now must be milliseconds since the Unix epoch, not ${options.now}`)
  }
  for (const [name, value] of Object.entries(timers)) {
    if (!Number.isFinite(value) || value <= 0) {
      throw new OverlayOptionError(`timers.${name} must be milliseconds above 0, not ${value}`)
    }
  }
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isInteger(value) || value < 1) {
      throw new OverlayOptionError(`limits.${name} must be a whole number ≥ 1, not ${value}`)
    }
  }
  if (timers.dead <= timers.heartbeat) {
    throw new OverlayOptionError(`timers.dead (${timers.dead}) must exceed timers.heartbeat (${timers.heartbeat})`)
  }
  return { self, degree, random, timers, limits }
}

/** Own addresses as they are sent: those that fit the wire, at most eight. */
export function encodableAddresses(addresses: readonly string[]): readonly string[] {
  return addresses.filter(address => isPlainText(address, MAX_ADDRESS_LENGTH)).slice(0, MAX_ADDRESSES)
}
