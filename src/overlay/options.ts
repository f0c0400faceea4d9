/**
 * Options of an overlay node, with defaults, units and validation.
 */
import { CodedError } from '../base/errors.js'
import { isPlainText, MAX_ADDRESS_LENGTH, MAX_ADDRESSES, MAX_KEY_LENGTH } from './codec.js'
import { ALL_TRANSPORTS, BASE_TRANSPORTS, type PeerKey, type Transports, type TransportsOf } from './messages.js'

/** An option of `OverlayNode` is out of range. */
class OverlayOptionError extends CodedError {
  static override readonly code = 'ERR_OVERLAY_OPTION'
}

/** All in milliseconds. */
export interface OverlayTimers {
  /** Interval of heartbeats on an edge, ± 10 %. @default 1000 */
  readonly heartbeat: number
  /** Silence after which a neighbour is considered dead; must exceed the 99th percentile of the round trip. @default 4000 */
  readonly dead: number
  /** Timeout of one step of a join (dial, JOIN, answer). @default 4000 */
  readonly join: number
  /** Interval of a root's beacons after a change, ± 50 %. A beacon is valid for three intervals. @default 2000 */
  readonly beacon: number
  /** Maximum of that interval, which doubles while nothing changes. @default 16000 */
  readonly beaconMax: number
  /** First wait before a peer is dialled again after a failure; doubles each time. @default 200 */
  readonly backoffMin: number
  /** Maximum of that wait. @default 8000 */
  readonly backoffMax: number
  /** Maximum time for which a peer is banned, or avoided because it accepted this node and soon dropped it. @default 60000 */
  readonly banMax: number
  /** Minimum time between two voluntary moves of this node. @default 10000 */
  readonly moveHold: number
}

interface OverlayLimits {
  /** Maximum number of known peers. @default 256 */
  readonly knownPeers: number
  /** Maximum number of inbound sessions that have not sent a JOIN. @default 32 */
  readonly inbound: number
  /** Maximum number of redirects in one join. @default 40 */
  readonly hops: number
}

export interface OverlayOptions {
  /** This peer's key: printable ASCII, at most 128 characters. */
  readonly self: PeerKey
  /** Addresses of this peer: at most 8 of at most 255 characters. Default: none. See `setAddresses`. */
  readonly addresses?: readonly string[]
  /** Transports that this peer can dial. @default TCP and WebSockets */
  readonly dials?: Transports
  /** The transports of a peer's addresses. Must not change. @default TCP and WebSockets, whatever the addresses are */
  readonly transportsOf?: TransportsOf
  /**
   * Maximum number of tree neighbours, 2 to 255: one parent, the rest children. With 2 the tree is a path, so its depth limit
   * of 255 limits the number of peers.
   * @default 4
   */
  readonly degree?: number
  /** Uniform in [0, 1); used for jitter only. */
  readonly random: () => number
  /** Start time in ms since the Unix epoch. All later `now` values continue this clock, which must be monotonic. */
  readonly now: number
  readonly timers?: Partial<OverlayTimers>
  readonly limits?: Partial<OverlayLimits>
}

export const DEFAULT_TIMERS: OverlayTimers = {
  heartbeat: 1000,
  dead: 4000,
  join: 4000,
  beacon: 2000,
  beaconMax: 16_000,
  backoffMin: 200,
  backoffMax: 8000,
  banMax: 60_000,
  moveHold: 10_000
}

const DEFAULT_LIMITS: OverlayLimits = { knownPeers: 256, inbound: 32, hops: 40 }

/** Options with defaults applied. */
export interface OverlaySettings {
  readonly self: PeerKey
  readonly degree: number
  readonly dials: Transports
  readonly transportsOf: TransportsOf
  readonly random: () => number
  readonly timers: OverlayTimers
  readonly limits: OverlayLimits
}

/** @throws {OverlayOptionError} naming the first option that is out of range. */
export function applyDefaults(options: OverlayOptions): OverlaySettings {
  const { self, degree = 4, random, dials = BASE_TRANSPORTS, transportsOf = () => BASE_TRANSPORTS } = options
  const timers = { ...DEFAULT_TIMERS, ...options.timers }
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  if (!isPlainText(self, MAX_KEY_LENGTH)) {
    throw new OverlayOptionError(`self must be 1 to ${MAX_KEY_LENGTH} printable ASCII characters`)
  }
  if (!Number.isInteger(degree) || degree < 2 || degree > 255) {
    throw new OverlayOptionError(`degree must be an integer from 2 to 255, not ${degree}`)
  }
  if (!Number.isInteger(dials) || dials < 0 || dials > ALL_TRANSPORTS) {
    throw new OverlayOptionError(`dials must be an integer from 0 to ${ALL_TRANSPORTS}, not ${dials}`)
  }
  if (!Number.isFinite(options.now) || options.now < 0) {
    throw new OverlayOptionError(`now must be milliseconds since the Unix epoch, not ${options.now}`)
  }
  for (const [name, value] of Object.entries(timers)) {
    if (!Number.isFinite(value) || value <= 0) {
      throw new OverlayOptionError(`timers.${name} must be a number of milliseconds above 0, not ${value}`)
    }
  }
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isInteger(value) || value < 1) {
      throw new OverlayOptionError(`limits.${name} must be an integer ≥ 1, not ${value}`)
    }
  }
  if (timers.dead <= timers.heartbeat) {
    throw new OverlayOptionError(`timers.dead (${timers.dead}) must exceed timers.heartbeat (${timers.heartbeat})`)
  }
  return { self, degree, dials, transportsOf, random, timers, limits }
}

/** The first eight addresses that fit the wire format. */
export function encodableAddresses(addresses: readonly string[]): readonly string[] {
  return addresses.filter(address => isPlainText(address, MAX_ADDRESS_LENGTH)).slice(0, MAX_ADDRESSES)
}
