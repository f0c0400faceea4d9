/**
 * Watches every update and adoption of a simulated network for what must never happen: one name for two contents, a node
 * that goes back, a batch that is too small, a predictor out of nowhere, a frame that an honest node refuses.
 */
import {
  type Batch,
  compareNames,
  type Header,
  nameKey,
  type Predictor,
  type PredictorName
} from '../src/admb/index.js'

export interface CheckerOptions {
  /** b */
  readonly batch: number
  /** S */
  readonly carry: number
  /** Whether names may only improve, as they do not with sender precedence. */
  readonly ordered: boolean
  /** Whether parameters and sums count uses of inputs (sim/fuzz/counting.ts). */
  readonly exact: boolean
}

/** More are only counted. */
const MOST_KEPT = 100

export class Checker {
  readonly #options: CheckerOptions
  readonly #violations: string[] = []
  /** Digest of every predictor made. */
  readonly #made = new Map<string, string>()
  readonly #taken: string[] = []
  /** What each node held last, undefined after a restart. */
  readonly #held: (PredictorName | undefined)[] = []

  constructor(options: CheckerOptions) {
    this.#options = options
  }

  get violations(): readonly string[] {
    return this.#violations
  }

  updated(node: number, predictor: Predictor, header: Header, batch: Batch): void {
    const key = nameKey(predictor.name)
    if (this.#made.has(key)) this.#report(`node ${node} made ${key}, which exists`)
    this.#made.set(key, predictor.name.digest)
    if (batch.count < this.#options.batch) this.#report(`node ${node} made ${key} from ${batch.count} gradients`)
    if (header.parent.updates !== predictor.name.updates - 1)
      this.#report(`${key} is no child of ${nameKey(header.parent)}`)
    if (this.#options.exact) this.#checkUses(key, predictor, header, batch)
    this.#hold(node, predictor.name)
  }

  /** With the exact learner: at which predictor an input's gradient was taken. */
  taken(input: number, at: PredictorName): void {
    this.#taken[input] = nameKey(at)
  }

  adopted(node: number, predictor: Predictor): void {
    const key = nameKey(predictor.name)
    const digest = this.#made.get(key)
    if (digest === undefined) this.#report(`node ${node} adopted ${key}, which nobody made`)
    else if (digest !== predictor.name.digest)
      this.#report(`node ${node} adopted another content under the name ${key}`)
    this.#hold(node, predictor.name)
  }

  refused(node: number, reason: string): void {
    this.#report(`node ${node} refused an honest frame: ${reason}`)
  }

  /** A restarted node may hold what its disk had. */
  restarted(node: number): void {
    this.#held[node] = undefined
  }

  #hold(node: number, name: PredictorName): void {
    const before = this.#held[node]
    if (this.#options.ordered && before && compareNames(name, before) <= 0) {
      this.#report(`node ${node} went from ${nameKey(before)} to ${nameKey(name)}`)
    }
    this.#held[node] = name
  }

  #checkUses(key: string, predictor: Predictor, header: Header, batch: Batch): void {
    const [sum] = batch.sum
    const parent = nameKey(header.parent)
    let total = 0
    for (let input = 0; input < sum.length; input++) {
      if (sum[input] === 0) continue
      total += sum[input]
      if (predictor.parameters[0][input] > 1) this.#report(`input ${input} was used twice on the lineage of ${key}`)
      if (this.#options.carry === 0 && this.#taken[input] !== parent) {
        this.#report(
          `${key} used input ${input}, whose gradient was taken at ${this.#taken[input]} and not at ${parent}`
        )
      }
    }
    if (total !== batch.count) this.#report(`${key} states ${batch.count} gradients and has ${total}`)
  }

  #report(violation: string): void {
    if (this.#violations.length < MOST_KEPT) this.#violations.push(violation)
  }
}
