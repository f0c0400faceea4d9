/**
 * Identity of predictors. Ids are compared instead of vectors, so an id can stand for megabytes of parameters. Ids are totally
 * ordered, which makes all nodes converge to the same predictor.
 */

export interface PredictorId {
  /** Number of updates on the predictor's lineage; 0 is the common starting predictor. */
  readonly updates: number
  /** Peer id of the node that computed it; empty for the starting predictor. */
  readonly origin: string
  /** Incarnation of that node. */
  readonly incarnation: number
  /** Digest of the content, 32 hexadecimal digits. Not part of the order: the same id with another digest is equivocation. */
  readonly digest: string
}

/** Tie-break between predictors with equally many updates: by origin (converges), or by sender as published. */
export type Precedence = 'origin' | 'sender'

/**
 * Total order of predictor ids: more updates, then lower origin, then higher incarnation.
 * Dekel et al., "Robust Distributed Online Prediction", Algorithm 5, with the origin's index instead of the sender's.
 * @returns > 0 if `a` is better than `b`, < 0 if it is worse, 0 if they are the same predictor
 */
export function compareIds(a: PredictorId, b: PredictorId): number {
  if (a === b) return 0
  if (a.updates !== b.updates) return a.updates - b.updates
  if (a.origin !== b.origin) return a.origin < b.origin ? 1 : -1
  return a.incarnation - b.incarnation
}

/** Whether the receiver, which holds `b`, must adopt `a` from the sender. */
export function takesPrecedence(
  precedence: Precedence,
  a: PredictorId,
  b: PredictorId,
  sender: string,
  receiver: string
): boolean {
  if (precedence === 'origin') return compareIds(a, b) > 0
  if (a.updates !== b.updates) return a.updates > b.updates
  return !sameId(a, b) && sender < receiver
}

/** Whether both ids denote the same predictor. */
export function sameId(a: PredictorId, b: PredictorId): boolean {
  return a === b || (a.updates === b.updates && a.origin === b.origin && a.incarnation === b.incarnation)
}

/** Whether two contents share an id: a peer is faulty or malicious, or an incarnation was used twice. */
export function equivocates(a: PredictorId, b: PredictorId): boolean {
  return sameId(a, b) && a.digest !== b.digest
}

/** Unique string such as `17@12D3Koo…#2`, for logs and as a map key. */
export function formatId(id: PredictorId): string {
  return `${id.updates}@${id.origin}#${id.incarnation}`
}
