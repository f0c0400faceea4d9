/** Signatures: what a node holds in the name of a correct node was made by it, and only makers that are hostile are excluded. */
import { formatId } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

/** No node adopts an update in the name of a correct node that has not made it, regardless of the sender. Predictors without headers do not count. */
export class Authentic implements Invariant {
  /** Names of all correct nodes so far. */
  readonly #origins = new Set<string>()
  readonly #made = new Set<string>()

  started({ origin }: CheckedNode): void {
    this.#origins.add(origin)
  }

  predictorChanged({ origin, node }: CheckedNode, { cause, predictor: { id } }: PredictorChange): void {
    const key = `${formatId(id)} ${id.digest}`
    if (cause === 'updated') this.#made.add(key)
    else if (this.#origins.has(id.origin) && node.lineage.length > 0 && !this.#made.has(key))
      throw new Violation('authentic', `${origin} ${cause} ${formatId(id)}, which ${id.origin} has not made`)
  }
}

/** No correct node is ever excluded for having signed different headers with one name. */
export class Attribution implements Invariant {
  readonly #origins = new Set<string>()

  started({ origin }: CheckedNode): void {
    this.#origins.add(origin)
  }

  makerExcluded({ origin }: CheckedNode, maker: string): void {
    if (this.#origins.has(maker))
      throw new Violation('attribution', `${origin} has excluded ${maker}, which is correct`)
  }
}
