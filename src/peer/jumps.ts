/** The threshold for jumps of a peer, and its messages about predictors that wait for signers. */
import type { JumpRule, QuarantinedPredictor } from '../admb/index.js'
import { OptionError } from '../learner/index.js'

/** Peers pass on as many vouchers for a predictor. */
const MAX_SIGNERS = 64

interface JumpOptions {
  readonly jumpSigners?: number
  readonly wholeSigners?: number
  readonly allow?: ReadonlySet<string>
}

/** As a thread receives it. */
export interface JumpThresholds {
  readonly signers: number
  readonly wholeSigners: number
  /** Ids of the peers that count, beside this one. */
  readonly listed: readonly string[]
}

/**
 * @returns undefined for no thresholds
 * @throws OptionError if there is no allow-list, or it has too few peers
 */
export function jumpThresholds(options: JumpOptions, self: string): JumpThresholds | undefined {
  const { jumpSigners: signers = 0, wholeSigners = 0, allow } = options
  const [name, most] = signers >= wholeSigners ? ['jumpSigners', signers] : ['wholeSigners', wholeSigners]
  for (const [option, value] of Object.entries({ jumpSigners: signers, wholeSigners }))
    if (!Number.isSafeInteger(value) || value < 0 || value > MAX_SIGNERS)
      throw new OptionError(`${option} must be an integer from 0 to ${MAX_SIGNERS}, not ${value}`)
  if (most === 0) return undefined
  if (allow === undefined)
    throw new OptionError(`${name} counts peers of an allow-list: give allow (--allow FILE), or remove ${name}`)
  const others = [...allow].filter(peer => peer !== self)
  if (most > others.length)
    throw new OptionError(
      `${name} is ${most}, but the allow-list names only ${others.length} beside this peer: reduce it, or add peers to the list`
    )
  return { signers, wholeSigners, listed: others }
}

export function jumpRule({ signers, wholeSigners, listed }: JumpThresholds, self: string): JumpRule {
  const peers = new Set([...listed, self])
  return { signers, wholeSigners, isListed: peer => peers.has(peer) }
}

/** For the status, which has room for 200 characters, and not for the text that an unknown maker has for a name. */
export function quarantineProblem({ id, from, answers, needed }: QuarantinedPredictor): string {
  return `a predictor from ${from} (update ${id.updates}) waits: ${answers} of ${needed} peers have signed it`
}

/** The same for a predictor that the loss gate has refused. */
export function refusalProblem({ id, from }: Pick<QuarantinedPredictor, 'id' | 'from'>): string {
  return `the predictor of ${from} (update ${id.updates}) is refused: on recent inputs it is worse than the current one`
}

export function describeQuarantined({ id, from, answers, needed }: QuarantinedPredictor): string {
  const what = `a predictor from ${from} (update ${id.updates}, computed by ${id.origin})`
  return `${what} waits: it does not follow from the current one, and ${answers} of ${needed} peers have signed it`
}
