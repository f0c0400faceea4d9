/** Each sum that arrives agrees with the receipts of its contributors, as far as these run and know their parts. */
import { hasSum, type Recipe } from '../../src/admb/index.js'
import { projectionOf, SEEDS } from '../../src/admb/projection.js'
import { compareReceipts } from '../../src/admb/receipts.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant } from './invariant.js'

export class Receipted implements Invariant {
  readonly #isLattice: boolean
  /** The newest run of each node, by its id. */
  readonly #nodes = new Map<string, CheckedNode>()
  #seed = 0

  constructor({ rule }: Recipe) {
    this.#isLattice = rule.grid !== undefined
  }

  started(checked: CheckedNode): void {
    this.#nodes.set(checked.origin, checked)
  }

  frameReceived(checked: CheckedNode, edge: number, frame: Uint8Array): void {
    if (!hasSum(frame)) return
    const held = checked.neighbourSum(edge)
    if (held === undefined || held.count === 0) return
    const predictor = checked.node.predictor.id
    this.#seed = (this.#seed + 1) % SEEDS
    const seed = this.#seed
    const receipts = held.contributors.map(one =>
      this.#nodes.get(one.origin)?.node.receipts?.answer({ ...one, predictor, seed })
    )
    const projection = this.#isLattice ? projectionOf(held.sum as Float32Array[], seed) : undefined
    const { isSigned, reason } = compareReceipts({ ...held, predictor, seed, projection }, receipts)
    if (isSigned !== false) return
    throw new Violation('receipts', `${checked.origin} holds a sum from ${checked.edges.get(edge)?.peer}: ${reason}`)
  }
}
