/**
 * Property 11 (conservation), as an account of every gradient: each own gradient of a node is on the lineage of its predictor, available
 * for the next update, or discarded. What is on the lineage follows from the headers alone: this checker adds up the gradients that each
 * batch has used of each node, and does not ask the nodes.
 */
import { type Contributor, formatId, type PredictorId } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

interface MadeUpdate {
  readonly parent: string
  /** Gradients of each run in the batch. */
  readonly gradients: ReadonlyMap<string, number>
}

interface RunAccount {
  /** Inputs whose gradients the run has computed. */
  inputs: number
  /** Numbers of these inputs, as far as they have any. */
  readonly numbers: Set<number>
  /** By predictor: the number of own gradients in the first closed segments, by the number of segments. */
  readonly closed: Map<string, Map<number, number>>
  /** By predictor: the number of own gradients on its lineage. */
  readonly used: Map<string, number>
}

const NONE: ReadonlyMap<string, number> = new Map()

export class GradientAccounts implements Invariant {
  /** Whether faults may hide from a node which of its gradients a lineage has used. Its account is then a bound. */
  readonly #isBound: boolean
  readonly #runs = new Map<string, RunAccount>()
  readonly #updates = new Map<string, MadeUpdate>()

  /** @param isBound whether nodes crash, restart or leave */
  constructor(isBound: boolean) {
    this.#isBound = isBound
  }

  started(checked: CheckedNode): void {
    this.#runs.set(runOf(checked), { inputs: 0, numbers: new Set(), closed: new Map(), used: new Map() })
  }

  learned(checked: CheckedNode, count: number, first?: number): void {
    const account = this.#accountOf(checked)
    if (first === undefined) account.inputs += count
    else {
      for (let input = first; input < first + count; input++) account.numbers.add(input)
      account.inputs = account.numbers.size
    }
  }

  frameSent(checked: CheckedNode): void {
    this.#record(checked)
  }

  predictorChanged(checked: CheckedNode, change: PredictorChange): void {
    if (change.cause !== 'updated') return
    const { header, batch, predictor } = change
    const parent = formatId(header.parent)
    const gradients = new Map<string, number>()
    const maker = runOf(checked)
    let others = 0
    for (const contributor of checked.node.inspect.contributorsOf(header.coverage)) {
      const run = keyOf(contributor)
      if (run === maker) continue
      const count = this.#runs.get(run)?.closed.get(parent)?.get(contributor.segments)
      if (count === undefined)
        throw new Violation(
          'accounts',
          `${formatId(predictor.id)} covers ${contributor.segments} segments of ${run}, which has sent no such sum`
        )
      gradients.set(run, count)
      others += count
    }
    gradients.set(maker, batch.count - others)
    this.#updates.set(formatId(predictor.id), { parent, gradients })
  }

  afterEvent(checked: CheckedNode): void {
    this.#record(checked)
    const { node, origin } = checked
    const { inputs } = this.#accountOf(checked)
    const used = this.#usedOf(checked, node.predictor.id)
    const { available, waiting, discarded } = node.account
    const missing = inputs - used - available - waiting - discarded
    if (missing === 0 || (this.#isBound && missing > 0)) return
    throw new Violation(
      'accounts',
      `of ${inputs} inputs of ${origin} ${used} are on the lineage of ${formatId(node.predictor.id)}, ${available} are available, ${waiting} wait and ${discarded} are discarded`
    )
  }

  /** Gradients of each run in the batch of a predictor. */
  gradientsIn(id: PredictorId): ReadonlyMap<string, number> {
    return this.#updates.get(formatId(id))?.gradients ?? NONE
  }

  #accountOf(checked: CheckedNode): RunAccount {
    return this.#runs.get(runOf(checked)) as RunAccount
  }

  /** Remembers how many gradients the closed segments have, of which the next sum covers a prefix. */
  #record(checked: CheckedNode): void {
    const { segments, count } = checked.node.inspect.closedSegments
    if (segments === 0) return
    const { closed } = this.#accountOf(checked)
    const id = formatId(checked.node.predictor.id)
    const lengths = closed.get(id) ?? new Map<number, number>()
    closed.set(id, lengths.set(segments, count))
  }

  /** Number of gradients of a run on the lineage of a predictor. */
  #usedOf(checked: CheckedNode, id: PredictorId): number {
    const run = runOf(checked)
    const { used } = this.#accountOf(checked)
    const path: string[] = []
    let key = formatId(id)
    let known = used.get(key)
    for (let update = this.#updates.get(key); known === undefined && update; update = this.#updates.get(key)) {
      path.push(key)
      key = update.parent
      known = used.get(key)
    }
    let total = known ?? 0
    for (const one of path.reverse()) {
      total += this.#updates.get(one)?.gradients.get(run) ?? 0
      used.set(one, total)
    }
    return total
  }
}

/** Name of the run of a node. */
export function runOf({ origin, incarnation, nonce }: CheckedNode): string {
  return keyOf({ origin, incarnation, nonce })
}

function keyOf({ origin, incarnation, nonce }: Contributor): string {
  return `${origin} (run ${incarnation}/${nonce})`
}
