/** Properties of gradient counts: 4 (size of batches), 10 (replay of batches) and 11 (conservation of own gradients). */
import {
  decodeSaved,
  formatId,
  maxRetainedSums,
  nextPredictor,
  type Predictor,
  type Recipe,
  type Shapes,
  sameId,
  WAIT_BATCHES
} from '../../src/admb/index.js'
import type { AdaptiveBatch } from '../../src/learner/index.js'
import { Violation } from '../result.js'
import type { Scenario } from '../scenario.js'
import { fingerprint } from './identity.js'
import type { CheckedNode, Invariant, NodeEvent, PredictorChange } from './invariant.js'

/** Steps that a node keeps. */
const MAX_CHAIN = 64
/** Integer sums of a predictor and direction that a node keeps for a neighbour, and how many it keeps whatever their size. */
const MAX_KEPT_SUMS = 64
const LEAST_KEPT_SUMS = 2
/** Updates at which learning ends. Only a hostile node can claim so many. */
const FINAL = 2 ** 48

/**
 * A batch has at least b gradients, unless the node was told to use what remains, at most 4 b for each segment, and at least one for each contributor. A node that holds b
 * gradients updates, unless it waits for an announced predictor.
 */
export class Size implements Invariant {
  readonly #batch: number | AdaptiveBatch
  readonly #hasQuotas: boolean

  /** @param hasQuotas whether batches below b are never valid */
  constructor(batch: number | AdaptiveBatch, hasQuotas: boolean) {
    this.#batch = batch
    this.#hasQuotas = hasQuotas
  }

  predictorChanged({ origin, usesRemainder }: CheckedNode, change: PredictorChange): void {
    if (change.cause !== 'updated') return
    const { header, batch, parent } = change
    const key = formatId(header.id)
    const least = usesRemainder && !this.#hasQuotas ? 1 : this.#at(parent)
    if (batch.count < least)
      throw new Violation('size', `${origin} made ${key} from ${batch.count} of ${least} gradients`)
    if (header.count !== batch.count)
      throw new Violation('size', `the header of ${key} has a count of ${header.count} for ${batch.count} gradients`)
    const { segments } = header.coverage
    const most = segments.reduce((sum, covered) => sum + covered, 0) * this.#most * WAIT_BATCHES
    if (batch.count > most || batch.count < segments.filter(covered => covered > 0).length)
      throw new Violation('size', `${origin} made ${key} from ${batch.count} gradients in segments of ${most}`)
  }

  /** The largest b. */
  get #most(): number {
    return typeof this.#batch === 'number' ? this.#batch : this.#batch.max
  }

  afterEvent({ origin, node }: CheckedNode): void {
    if (node.predictor.id.updates >= FINAL) return
    const least = this.#at(node.predictor) * (node.isWaiting ? WAIT_BATCHES : 1)
    if (node.gradients >= least)
      throw new Violation('size', `${origin} holds ${node.gradients} gradients without an update of ${least}`)
  }

  /** b of a predictor. */
  #at({ parameters }: Predictor): number {
    return typeof this.#batch === 'number' ? this.#batch : this.#batch.of(parameters)
  }
}

/**
 * The batch replayed on the parent gives the predictor, bit for bit. As equal ids imply equal bits (`Identity`), this extends to
 * the whole lineage.
 */
export class Lineage implements Invariant {
  readonly #recipe: Recipe

  constructor(recipe: Recipe) {
    this.#recipe = recipe
  }

  predictorChanged({ origin }: CheckedNode, change: PredictorChange): void {
    if (change.cause !== 'updated') return
    const { parent, predictor, header, batch } = change
    const key = formatId(predictor.id)
    if (!sameId(header.parent, parent.id))
      throw new Violation(
        'lineage',
        `${origin} made ${key} from ${formatId(parent.id)}, not ${formatId(header.parent)}`
      )
    if (predictor.id.updates !== parent.id.updates + 1)
      throw new Violation('lineage', `${key} is not one update ahead of ${formatId(parent.id)}`)
    const replayed = nextPredictor(parent, batch, predictor.id, { ...this.#recipe, digest: () => '' })
    if (fingerprint(replayed) !== fingerprint(predictor))
      throw new Violation('lineage', `the batch of ${key}, replayed, gives another predictor`)
  }
}

/**
 * Own gradients are lost only at a change of predictor or with the node, never by rewiring. Which of them a change of predictor
 * may drop with carry-over, only the exact learner can check (exact.ts).
 */
export class Conservation implements Invariant {
  readonly #carry: number

  /** @param carry S */
  constructor(carry: number) {
    this.#carry = carry
  }

  afterEvent({ origin, node, before }: CheckedNode, event: NodeEvent, count: number): void {
    const own = node.ownGradients
    if (node.predictor.id.updates >= FINAL) return
    if (node.predictor === before.predictor) {
      if (own !== before.own + count)
        throw new Violation(
          'conservation',
          `${origin} had ${before.own} own gradients, ${event} ${count}, and has ${own}`
        )
    } else if (this.#carry === 0 && own !== 0)
      throw new Violation('conservation', `${origin} carries over ${own} gradients with a carry-over of 0`)
  }
}

/**
 * A node keeps vectors only of own segments that can still be carried over: a bounded number, none older than S periods. The steps
 * it keeps take at most as many bytes as a whole predictor, unless it is a single one. The integer sums that it keeps for a neighbour
 * are at most two, or take at most `keptBytes`.
 */
export class Memory implements Invariant {
  readonly #carry: number
  readonly #keptBytes: number
  readonly #wholeBytes: number

  /** @param start any predictor */
  constructor({ carry, keptBytes }: Scenario, { parameters, average, state }: Predictor) {
    this.#carry = carry
    this.#keptBytes = keptBytes
    this.#wholeBytes = [...parameters, ...average, ...state].reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  ticked({ origin, node }: CheckedNode): void {
    const { sums, periods } = node.retention
    if (periods > this.#carry)
      throw new Violation('memory', `${origin} keeps the vector of a segment that is ${periods} periods old`)
    const limit = this.#carry === 0 ? 0 : maxRetainedSums(this.#carry)
    if (sums > limit) throw new Violation('memory', `${origin} keeps ${sums} vectors, the limit is ${limit}`)
    for (const { sums, bytes } of node.keptSums) {
      if (sums > MAX_KEPT_SUMS || (sums > LEAST_KEPT_SUMS && bytes > this.#keptBytes))
        throw new Violation('memory', `${origin} keeps ${sums} sums of ${bytes} bytes for a neighbour`)
    }
  }

  predictorChanged({ origin, node }: CheckedNode): void {
    const { steps, bytes } = node.chain
    if (steps > 1 && (steps > MAX_CHAIN || bytes > this.#wholeBytes))
      throw new Violation('memory', `${origin} keeps ${steps} steps of ${bytes} bytes`)
  }
}

/** Whatever a node has adopted or computed, it can store, and another node can read. */
export class Storable implements Invariant {
  readonly #shapes: Shapes

  /** @param start any predictor */
  constructor({ parameters, average, state }: Predictor) {
    const layoutOf = (blocks: Predictor['state']) => ({
      blocks: blocks.map(({ length }, i) => ({ name: String(i), length }))
    })
    this.#shapes = { parameters: layoutOf(parameters), average: layoutOf(average), state: layoutOf(state) }
  }

  predictorChanged({ origin, node }: CheckedNode): void {
    try {
      if (sameId(decodeSaved(node.storage.save(), this.#shapes).predictor.id, node.predictor.id)) return
    } catch (error) {
      throw new Violation('storable', `${origin} cannot read the state that it stores: ${(error as Error).message}`)
    }
    throw new Violation('storable', `${origin} stores another predictor than it holds`)
  }
}
