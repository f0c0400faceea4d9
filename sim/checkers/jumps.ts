/** The rule for jumps: a predictor that does not follow from one that a node has held is adopted only if enough nodes answer for it. */
import { formatId, type Header, type PredictorId } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, HostileNodes, Invariant, PredictorChange } from './invariant.js'

/**
 * Counts the correct nodes that have made an update of its lineage, or have held it, and all peer ids of hostile ones, which may claim so. Neither
 * count depends on the vouchers that nodes exchange.
 */
export class Jumps implements Invariant {
  readonly #needed: number
  readonly #hostile: HostileNodes
  /** Predictors that each correct node has held, with their ancestors, by its origin. */
  readonly #held = new Map<string, Set<string>>()
  /** Correct nodes that have held a predictor. */
  readonly #holders = new Map<string, Set<string>>()

  /** @param needed number of nodes that must answer for a predictor */
  constructor(needed: number, hostile: HostileNodes) {
    this.#needed = needed
    this.#hostile = hostile
  }

  started(checked: CheckedNode): void {
    this.#record(checked, checked.node.predictor.id, [])
  }

  predictorChanged(checked: CheckedNode, { cause, parent: before, predictor: { id } }: PredictorChange): void {
    const { lineage, chain } = checked.node
    const index = lineage.findIndex(header => keyOf(header.id) === keyOf(id))
    const headers = index < 0 ? [] : lineage.slice(index)
    // Steps are replayed, so their result follows from what the node held. A predictor that waited may have followed in the same
    // event; then nothing shows how this one was adopted.
    const isWhole = cause === 'adopted' && (index < 0 || (index === 0 && chain.steps === 0))
    if (isWhole) this.#check(checked, before.id, id, headers)
    this.#record(checked, id, headers)
  }

  #check({ origin }: CheckedNode, before: PredictorId, id: PredictorId, headers: readonly Header[]): void {
    const held = this.#held.get(origin)
    if (before.updates > 0 && headers.some(({ parent }) => held?.has(keyOf(parent)))) return
    const correct = new Set(this.#holders.get(keyOf(id)))
    for (const header of headers) if (this.#held.has(header.id.origin)) correct.add(header.id.origin)
    if (correct.size + this.#hostile.identities >= this.#needed) return
    const what = `${origin} went from ${formatId(before)} to ${formatId(id)}`
    throw new Violation('jumps', `${what}, for which ${correct.size} correct nodes answer; ${this.#needed} are needed`)
  }

  #record({ origin }: CheckedNode, id: PredictorId, headers: readonly Header[]): void {
    const held = this.#held.get(origin) ?? new Set()
    this.#held.set(origin, held)
    for (const one of [id, ...headers.flatMap(header => [header.id, header.parent])]) {
      const key = keyOf(one)
      if (held.has(key)) continue
      held.add(key)
      this.#holders.set(key, (this.#holders.get(key) ?? new Set()).add(origin))
    }
  }
}

function keyOf(id: PredictorId): string {
  return `${formatId(id)} ${id.digest}`
}
