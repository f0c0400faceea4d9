/** What a peer uses of others that are not trusted, and its messages about predictors that wait for signers. */
import type { QuarantinedPredictor } from '../admb/index.js'
import { boundsOf, OptionError, type Trust } from '../learning/index.js'
import type { LearningSpec } from '../task/learning-spec.js'

/** Some of the options of a peer. */
interface TrustOptions {
  readonly spec: Pick<LearningSpec, 'influence'>
  readonly trust?: Trust
  readonly rate?: number
  readonly allow?: ReadonlySet<string>
  readonly acceptInvitations?: boolean
  readonly invitation?: string
}

/** As a thread receives it. */
export interface TrustLimits {
  /** Gradients a second of each other peer. @default any number */
  readonly rate?: number
  /** Number of peers that must answer for a jump. */
  readonly signers: number
  /** Ids of the peers that count, beside this one; undefined for all. */
  readonly listed?: readonly string[]
  /** Whether gradients of peers that are not listed are used. */
  readonly isOpen: boolean
}

/**
 * @returns undefined if members are trusted
 * @throws OptionError if the peer itself learns more than the rate, or there are too few listed peers
 */
export function trustLimits(options: TrustOptions, self: string): TrustLimits | undefined {
  const { trust, rate: own = 0, allow, acceptInvitations = false, invitation, spec } = options
  const { rate, signers = 0 } = boundsOf(trust) ?? {}
  if (spec.influence === undefined && rate === undefined && signers === 0) return undefined
  if (rate !== undefined && own > rate)
    throw new OptionError(
      `this peer learns up to ${own} inputs a second (--rate), of which others use ${rate} (--trust bounded,rate=${rate}): raise the rate of --trust on all peers`
    )
  const listed = allow && [...allow].filter(peer => peer !== self)
  if (listed && signers > listed.length)
    throw new OptionError(
      `trust: signers is ${signers}, but the allow-list names only ${listed.length} beside this peer: reduce it, or add peers to the list`
    )
  // Invited peers contribute as well, and are not on the list.
  return { rate, signers, listed, isOpen: acceptInvitations || invitation !== undefined }
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
