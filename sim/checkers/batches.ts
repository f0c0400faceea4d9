/**
 * Properties of batches: 4 (size), 10 (replay), 11 (conservation of own gradients) and 13 (batch choice), and `rounded`, the
 * numbers with few bits.
 */

import { maxKeptElements } from '../../src/admb/core/own-sum.js'
import {
  decodeSaved,
  formatId,
  type MasterAlgorithm,
  nextPredictor,
  type Predictor,
  type Recipe,
  type Shapes,
  sameId,
  WAIT_BATCHES
} from '../../src/admb/index.js'
import { segmentCount } from '../../src/admb/state/coverage.js'
import type { AdaptiveBatch, BatchRule, Blocks, RoundedBlocks } from '../../src/learning/index.js'
import { Violation } from '../result.js'
import type { Scenario } from '../scenario.js'
import { fingerprint } from './identity.js'
import type { CheckedNode, Invariant, NodeEvent, PredictorChange } from './invariant.js'

/** Vectors of own segments that a node keeps beyond one for each of S periods. */
const MORE_VECTORS = 65
/** Steps that a node keeps. */
const MAX_CHAIN = 64
/** Integer sums of a predictor and direction that a node keeps for a neighbour, and how many it keeps whatever their size. */
const MAX_KEPT_SUMS = 64
const LEAST_KEPT_SUMS = 2
/** Updates at which learning ends. Only a hostile node can claim that number. */
const FINAL = 2 ** 48

/**
 * A batch has at least b gradients, unless the node was told to use what remains, at most 4 b for each segment, and at least one for each contributor. A node that holds b
 * gradients updates, unless it waits for an announced predictor.
 */
export class Size implements Invariant {
  readonly #batch: number | BatchRule
  readonly #hasQuotas: boolean
  readonly #algorithm: MasterAlgorithm | undefined

  /**
   * @param hasQuotas whether batches below b are never valid
   * @param algorithm if only the master updates; DMB has shares instead of b (`Shares`)
   */
  constructor(batch: number | BatchRule, hasQuotas: boolean, algorithm: MasterAlgorithm | undefined) {
    this.#batch = batch
    this.#hasQuotas = hasQuotas
    this.#algorithm = algorithm
  }

  predictorChanged({ origin, usesRemainder }: CheckedNode, change: PredictorChange): void {
    if (change.cause !== 'updated') return
    const { header, batch, parent } = change
    const key = formatId(header.id)
    const isAny = this.#algorithm === 'dmb' || (usesRemainder && !this.#hasQuotas)
    const least = isAny ? 1 : this.#at(parent)
    if (batch.count < least)
      throw new Violation('size', `${origin} made ${key} from ${batch.count} of ${least} gradients`)
    if (header.count !== batch.count)
      throw new Violation('size', `the header of ${key} has a count of ${header.count} for ${batch.count} gradients`)
    const most = segmentCount(header.coverage) * this.#most * WAIT_BATCHES
    if (batch.count > most || batch.count < header.coverage.size)
      throw new Violation('size', `${origin} made ${key} from ${batch.count} gradients in segments of ${most}`)
  }

  /** The largest b. */
  get #most(): number {
    return typeof this.#batch === 'number' ? this.#batch : this.#batch.max
  }

  afterEvent({ origin, node, master }: CheckedNode): void {
    if (node.predictor.id.updates >= FINAL) return
    if (this.#algorithm === 'dmb' || (this.#algorithm === 'mawo' && master !== 'self')) return
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
 * A node keeps vectors only of own segments that can still be carried over: a bounded number, none older than S periods, and grids
 * of earlier predictors only with such vectors. The steps
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
    const { sums, elements, grids, periods } = node.inspect.retention
    if (!(periods <= this.#carry))
      throw new Violation('memory', `${origin} keeps the vector of a segment that is ${periods} periods old`)
    const limit = this.#carry === 0 ? 0 : this.#carry + MORE_VECTORS
    if (!(sums <= limit)) throw new Violation('memory', `${origin} keeps ${sums} vectors, the limit is ${limit}`)
    if (!(elements <= maxKeptElements(node.predictor.parameters)))
      throw new Violation('memory', `${origin} keeps ${elements} elements of earlier sums`)
    if (sums + elements === 0 && grids > 0)
      throw new Violation('memory', `${origin} keeps ${grids} grids without a vector`)
    for (const { sums, bytes } of node.inspect.keptSums) {
      if (!(sums <= LEAST_KEPT_SUMS || (sums <= MAX_KEPT_SUMS && bytes <= this.#keptBytes)))
        throw new Violation('memory', `${origin} keeps ${sums} sums of ${bytes} bytes for a neighbour`)
    }
  }

  predictorChanged({ origin, node }: CheckedNode): void {
    const { steps, bytes } = node.inspect.chain
    if (!(steps <= 1 || (steps <= MAX_CHAIN && bytes <= this.#wholeBytes)))
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

/**
 * Property 13 (batch choice): where b adapts, the b of every predictor is within the bounds and follows from its parent's b and the
 * batch. At most all gradients of a batch were added while no neighbour held the predictor.
 */
export class BatchChoice implements Invariant {
  readonly #batch: AdaptiveBatch

  constructor(batch: AdaptiveBatch) {
    this.#batch = batch
  }

  predictorChanged(_node: CheckedNode, change: PredictorChange): void {
    const { min, max } = this.#batch
    const { predictor, parent } = change
    const key = formatId(predictor.id)
    const b = batchOf(predictor)
    if (!(b >= min && b <= max)) throw new Violation('batch choice', `${key} has b = ${b}, outside ${min}..${max}`)
    if (change.cause !== 'updated') return
    const { sum, count } = change.batch
    const unshared = sum[sum.length - 1].values[0]
    if (!(unshared >= 0 && unshared <= count))
      throw new Violation('batch choice', `${unshared} of the ${count} gradients of ${key} are unshared`)
    const [expected] = this.#batch.next(Float32Array.of(batchOf(parent)), Float32Array.of(unshared), count)
    if (b !== expected)
      throw new Violation('batch choice', `${key} has b = ${b}; its parent and its batch give ${expected}`)
  }
}

/** b before rounding. */
function batchOf({ parameters }: Predictor): number {
  return parameters[parameters.length - 1][0]
}

/** Bits of float32 numbers that are 0. */
const LOW = (1 << 13) - 1

/** Property `rounded`: with integer sums, the long blocks of predictors consist of numbers with 10 bits after the leading one. */
export class Rounded implements Invariant {
  readonly #rounded: RoundedBlocks

  constructor(rounded: RoundedBlocks) {
    this.#rounded = rounded
  }

  predictorChanged(_node: CheckedNode, { predictor }: PredictorChange): void {
    for (const group of ['parameters', 'average', 'state'] as const) {
      const found = unrounded(predictor[group], this.#rounded[group])
      if (found === undefined) continue
      throw new Violation('rounded', `${formatId(predictor.id)} has ${found} in its ${group}`)
    }
  }
}

function unrounded(blocks: Blocks, isRounded: readonly boolean[]): number | undefined {
  for (const [k, block] of blocks.entries()) {
    if (!isRounded[k]) continue
    const bits = new Int32Array(block.buffer, block.byteOffset, block.length)
    for (let i = 0; i < bits.length; i++) if ((bits[i] & LOW) !== 0) return block[i]
  }
  return undefined
}
