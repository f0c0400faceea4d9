/**
 * Signatures: what a node holds in the name of a correct node was made or contributed by it, and only makers that are hostile are
 * excluded.
 */
import { formatId } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, HostileNodes, Invariant, PredictorChange } from './invariant.js'

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

/**
 * The sums that a node holds contain gradients of at most one run of each node, and of no run of a correct node that has not begun. If
 * nodes know the members of the network, there are no other contributors.
 */
export class Contributors implements Invariant {
  readonly #hostile: HostileNodes
  readonly #hasMembers: boolean
  /** Runs of correct nodes so far, by origin. */
  readonly #runs = new Map<string, Set<string>>()

  /** @param hasMembers whether nodes know the members */
  constructor(hostile: HostileNodes, hasMembers: boolean) {
    this.#hostile = hostile
    this.#hasMembers = hasMembers
  }

  started({ origin, incarnation, nonce }: CheckedNode): void {
    this.#runs.set(origin, (this.#runs.get(origin) ?? new Set()).add(`${incarnation} ${nonce}`))
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const contributors = checked.neighbourSum(edge)?.contributors ?? []
    const what = `the sum that ${checked.origin} holds from ${checked.edges.get(edge)?.peer}`
    const origins = new Set<string>()
    for (const { origin, incarnation, nonce } of contributors) {
      if (origins.has(origin)) throw new Violation('contributors', `${what} has two runs of ${origin}`)
      origins.add(origin)
      const runs = this.#runs.get(origin)
      if (runs === undefined && this.#hasMembers && !this.#hostile.hasIdentity(origin))
        throw new Violation('contributors', `${what} has gradients of ${origin}, which is no node`)
      if (runs?.has(`${incarnation} ${nonce}`) === false)
        throw new Violation('contributors', `${what} has gradients of run ${incarnation} ${nonce} of ${origin}`)
    }
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
