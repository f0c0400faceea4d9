/** The status of a peer, from what its parts report. */
import type { PeerStatus } from './status.js'
import type { LearnerStatus } from './thread-messages.js'

/** Fields of the status, and what the others follow from. */
interface StatusParts
  extends Pick<
    PeerStatus,
    | 'id'
    | 'incarnation'
    | 'nonce'
    | 'networkDrifts'
    | 'neighbours'
    | 'algorithm'
    | 'master'
    | 'discardedShare'
    | 'problem'
    | 'data'
    | 'received'
  > {
  readonly learner: LearnerStatus
  readonly names: Readonly<Record<string, string>>
  readonly distrusted: readonly string[]
  readonly sent: Omit<PeerStatus['sent'], 'kinds'>
}

export function peerStatus({ learner, ...parts }: StatusParts): PeerStatus {
  const { progress, traffic, quarantined: _quarantined, refused: _refused, joining: _joining, ...reported } = learner
  const { inputs, surplus = 0, loss, hits } = progress
  const weight = inputs + surplus
  const average = (sum: number) => (weight > 0 ? sum / weight : 0)
  return {
    ...parts,
    ...reported,
    inputs,
    updates: reported.predictor.updates,
    weight: weight === inputs ? undefined : weight,
    averageLoss: average(loss),
    accuracy: hits === undefined ? undefined : average(hits),
    names: Object.keys(parts.names).length > 0 ? parts.names : undefined,
    distrusted: parts.distrusted.length > 0 ? parts.distrusted : undefined,
    received: { ...parts.received },
    sent: { ...parts.sent, kinds: traffic }
  }
}
