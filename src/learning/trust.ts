/** How far the peers of a network trust its members: option `trust` of peers and of the simulator. */
import { OptionError } from './options.js'

/** The influence of each peer is bounded, and so is what others use of it. */
export interface BoundedTrust {
  /** Gradients a second that each peer contributes at most, above 0; it may save up those of some periods. @default any number */
  readonly rate?: number
  /**
   * Number of peers, up to 64, that must have signed a whole predictor that does not follow from one that a peer holds or held.
   * @default 0
   */
  readonly signers?: number
}

/**
 * - `members`: members are trusted with the predictor. Frames have limits, headers are signed, and the loss gate judges whole predictors;
 * - `bounded`, or an object: no peer has much more influence than another (docs/explanation/security.md). All peers must agree on it.
 */
export type Trust = 'members' | 'bounded' | BoundedTrust

/** Peers pass on as many vouchers for a predictor. */
const MAX_SIGNERS = 64
const EXPECTED = 'expected members, or bounded[,rate=N][,signers=N], such as bounded,rate=200,signers=2'

/** @returns undefined if members are trusted @throws OptionError for a value that is unknown or out of range */
export function boundsOf(trust: Trust = 'members'): BoundedTrust | undefined {
  if (trust === 'members') return undefined
  if (trust === 'bounded') return {}
  if (typeof trust !== 'object') throw new OptionError(`trust: ${EXPECTED}, not ${String(trust)}`)
  const { rate, signers = 0, ...others } = trust
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new OptionError(`trust: unknown key ${unknown}; ${EXPECTED}`)
  if (rate !== undefined && !(rate > 0 && Number.isFinite(rate)))
    throw new OptionError(`trust: rate must be a number above 0, not ${rate}`)
  if (!Number.isInteger(signers) || signers < 0 || signers > MAX_SIGNERS)
    throw new OptionError(`trust: signers must be an integer from 0 to ${MAX_SIGNERS}, not ${signers}`)
  return trust
}

/** `members`, or `bounded[,rate=N][,signers=N]`. @throws OptionError */
export function parseTrust(text: string): Trust {
  const [level, ...pairs] = text.split(',')
  if (text === 'members' || text === 'bounded') return text
  const entries = pairs.map(pair => pair.split('='))
  const isMalformed =
    level !== 'bounded' || entries.some(([, value = '', ...more]) => value.trim() === '' || more.length > 0)
  if (isMalformed || new Set(entries.map(([key]) => key)).size < entries.length)
    throw new OptionError(`trust: ${EXPECTED}, not ${text}`)
  const trust: BoundedTrust = Object.fromEntries(entries.map(([key, value]) => [key, Number(value)]))
  return boundsOf(trust) as BoundedTrust
}
