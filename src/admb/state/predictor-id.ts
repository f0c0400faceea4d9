/**
 * Identity of predictors. Ids are compared instead of vectors, so an id can stand for megabytes of
 * parameters. Ids are totally ordered, which makes all nodes converge to the same predictor.
 */

export interface PredictorId {
  /** Number of updates on the predictor's lineage; 0 is the common starting predictor. */
  readonly updates: number
  /** Peer id of the node that computed it; empty for the starting predictor. */
  readonly origin: string
  /** Incarnation of that node. */
  readonly incarnation: number
  /** Random number of that run: runs of copied or restored state have the same incarnation. */
  readonly nonce: number
  /** Digest of the content, 32 hexadecimal digits. */
  readonly digest: string
}

/** Tie-break between as many updates: by origin (converges), or by sender as published. */
export type Precedence = 'origin' | 'sender'

/**
 * Total order of predictor ids: more updates, then lower origin, then higher incarnation, then
 * higher nonce, then lower digest. Dekel et al., "Robust Distributed Online Prediction", Algorithm
 * 5, with the origin's index instead of the sender's.
 * @returns > 0 if `a` is better than `b`, < 0 if it is worse, 0 if they are the same predictor
 */
export function compareIds(a: PredictorId, b: PredictorId): number {
  if (a === b) return 0
  if (a.updates !== b.updates) return a.updates - b.updates
  if (a.origin !== b.origin) return a.origin < b.origin ? 1 : -1
  if (a.incarnation !== b.incarnation) return a.incarnation - b.incarnation
  if (a.nonce !== b.nonce) return a.nonce - b.nonce
  return a.digest === b.digest ? 0 : a.digest < b.digest ? 1 : -1
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
  return a === b || compareIds(a, b) === 0
}

/**
 * String such as `17@12D3Koo…#2.9f3a01bc`, for logs and as a map key. Only a faulty node computes
 * two predictors with one such id.
 */
export function formatId({ updates, origin, incarnation, nonce }: PredictorId): string {
  return `${updates}@${origin}#${incarnation}${nonce === 0 ? '' : `.${nonce.toString(16)}`}`
}

/** A map key that differs for all ids that are not the same. */
export function idKey(id: PredictorId): string {
  return `${formatId(id)} ${id.digest}`
}
