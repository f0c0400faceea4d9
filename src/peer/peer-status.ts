/** The status of a peer, from what its parts report. */
import type { PeerStatus } from './options.js'
import type { LearnerStatus } from './thread-messages.js'

type Reported = 'id' | 'incarnation' | 'nonce' | 'networkDrifts' | 'neighbours' | 'discardedShare' | 'received'

/** Fields of the status, and what the others follow from. */
export interface StatusParts extends Pick<PeerStatus, Reported> {
  readonly learner: LearnerStatus
  readonly names: Readonly<Record<string, string>>
  readonly problem: string | undefined
  readonly distrusted: readonly string[]
  readonly data: string | undefined
  readonly sent: Omit<PeerStatus['sent'], 'kinds'>
}

export function peerStatus(parts: StatusParts): PeerStatus {
  const { id, incarnation, nonce, networkDrifts, neighbours, discardedShare, problem, distrusted, data } = parts
  const { progress, metrics, drift, predictor, batch, adopted, discarded, skipped, ended, ...learner } = parts.learner
  const { addedClasses, traffic, residualShare, clippedShare, privacy } = learner
  const { inputs, surplus = 0, loss, hits } = progress
  const weight = inputs + surplus
  return {
    id,
    incarnation,
    nonce,
    inputs,
    updates: predictor.updates,
    ...(addedClasses && { addedClasses }),
    ...(weight !== inputs && { weight }),
    averageLoss: weight > 0 ? loss / weight : 0,
    ...(hits !== undefined && { accuracy: weight > 0 ? hits / weight : 0 }),
    ...(metrics && { metrics }),
    ...(drift && { drift }),
    networkDrifts,
    neighbours,
    ...(Object.keys(parts.names).length > 0 && { names: parts.names }),
    predictor,
    batch,
    adopted,
    discarded,
    gradients: learner.gradients,
    discardedShare,
    ...(problem !== undefined && { problem }),
    ...(distrusted.length > 0 && { distrusted }),
    skipped,
    ended,
    ...(data !== undefined && { data }),
    received: { ...parts.received },
    sent: { ...parts.sent, kinds: traffic },
    ...(residualShare !== undefined && { residualShare }),
    ...(clippedShare !== undefined && { clippedShare }),
    ...(privacy && { privacy })
  }
}
