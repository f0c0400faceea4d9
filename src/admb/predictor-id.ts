/**
 * Predictors are known by name. "Same predictor" compares names and never floats, so a name can stand for megabytes of
 * vectors; and names are totally ordered, which is what makes agreement converge from every start.
 */

export interface PredictorId {
  /** Number of updates on the predictor's lineage; 0 is the common starting predictor. */
  readonly updates: number
  /** Index of the node that made it; empty for the starting predictor. */
  readonly origin: string
  /** Incarnation of that node when it made it. */
  readonly incarnation: number
  /** Digest of the content, 32 hexadecimal digits. Not part of the order: equal names with different digests are equivocation. */
  readonly digest: string
}

/** Whose index decides between predictors with equally many updates: its maker's (convergent), or the paper's, its sender's. */
export type Precedence = 'origin' | 'sender'

/**
 * Total order of predictor names: more updates, then lower origin, then higher incarnation.
 * Dekel et al., "Robust Distributed Online Prediction", Algorithm 5, with the maker's index in place of the sender's.
 * @returns > 0 if `a` is better than `b`, < 0 if worse, 0 if they name the same predictor
 */
export function compareIds(a: PredictorId, b: PredictorId): number {
  if (a === b) return 0
  if (a.updates !== b.updates) return a.updates - b.updates
  if (a.origin !== b.origin) return a.origin < b.origin ? 1 : -1
  return a.incarnation - b.incarnation
}

/** Whether the receiver, who holds `b`, should take over `a` from the sender; both by index. */
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

/** Whether both name the same predictor. */
export function sameId(a: PredictorId, b: PredictorId): boolean {
  return a === b || (a.updates === b.updates && a.origin === b.origin && a.incarnation === b.incarnation)
}

/** Whether two names agree while their contents differ: somebody lies, or an incarnation was used twice. */
export function equivocates(a: PredictorId, b: PredictorId): boolean {
  return sameId(a, b) && a.digest !== b.digest
}

/** A name for people and maps, such as `17@12D3Koo…#2`, exact and unique. */
export function formatId(id: PredictorId): string {
  return `${id.updates}@${id.origin}#${id.incarnation}`
}
