/**
 * The integer sums exchanged with a neighbour. A sum is sent as its difference from the newest one
 * that the neighbour holds, and the step to the next predictor as its difference from what both
 * ends have exchanged at its parent: only what is new crosses the edge. Differences of integers are
 * exact.
 */

import { addPacked, areIntegers, type PackedBlock, packed, packedBytes } from '../../numeric/lattice.js'
import type { Sum, SumBlock } from '../../numeric/sums.js'
import type { AdmbOptions } from '../core/options.js'
import { type PredictorId, sameId } from '../state/predictor-id.js'
import { createStep, expand, recycle, type Shapes, type Step, stepOf } from '../state/vectors.js'
import { FrameError, integerBlock } from './bytes.js'
import { SequenceWindow } from './coverage-encoder.js'
import type { Chain, ReceivedFrame, ReceivedSum } from './frame.js'

/** Number of earlier predictors whose sums are kept for steps that arrive after a switch. */
const PAST_EXCHANGES = 3
/** Default of `AdmbOptions.keptBytes`. */
const KEPT_BYTES = 1 << 24
/** Maximum number of sums that are kept. */
const MAX_KEPT = 64
/** Assumed ratio of the size of the next sum to that of the last one. */
const GROWTH = 2

/** A sum that is kept. */
export type PackedBlocks = readonly PackedBlock[]

/** Sums of one predictor and direction. */
export interface KeptSums {
  readonly sums: number
  readonly bytes: number
}

/** The sums exchanged at one predictor, by sequence number. */
interface Exchange {
  readonly id: PredictorId
  readonly sent: SequenceWindow<PackedBlocks>
  readonly received: SequenceWindow<PackedBlocks>
  /** Newest sum that the neighbour holds, or will hold when all frames have arrived; 0 for none. */
  base: number
  /** Sequence number of the newest sum held from the neighbour, 0 for none. */
  held: number
}

export class ExchangedSums {
  readonly #shapes: Shapes
  readonly #isOrdered: boolean
  readonly #keptBytes: number
  /** The exchange at the current predictor, then those at earlier ones. */
  #exchanges: Exchange[] = []
  /** Sequence number of the last frame that the neighbour is known to have received. */
  #received = 0

  /**
   * @param id the current predictor
   * @param options see `AdmbOptions`
   */
  constructor(
    shapes: Shapes,
    id: PredictorId,
    { isOrdered = false, keptBytes = KEPT_BYTES }: Pick<AdmbOptions, 'isOrdered' | 'keptBytes'>
  ) {
    this.#shapes = shapes
    this.#isOrdered = isOrdered
    this.#keptBytes = keptBytes
    this.switchPredictor(id)
  }

  switchPredictor(id: PredictorId): void {
    const known = this.#exchanges.find(exchange => sameId(exchange.id, id)) ?? this.#create(id)
    const past = this.#exchanges.filter(exchange => exchange !== known && isUsed(exchange))
    this.#exchanges = [known, ...past.slice(0, PAST_EXCHANGES)]
  }

  #create(id: PredictorId): Exchange {
    const window = () => new SequenceWindow(MAX_KEPT, { sizeOf: bytesOf, maxSize: this.#keptBytes })
    return { id, sent: window(), received: window(), base: 0, held: 0 }
  }

  /**
   * Whether a further sum must wait until the neighbour has received an earlier one. Sums on their
   * way would displace the one that steps of the neighbour refer to.
   */
  get isFull(): boolean {
    if (!this.#isOrdered) return false
    const [{ sent }] = this.#exchanges
    const last = sent.values().at(-1)
    return last !== undefined && !sent.hasRoom(GROWTH * bytesOf(last), sent.newest(this.#received))
  }

  /** The sums kept of each predictor and direction: how many, and their bytes. */
  get kept(): readonly KeptSums[] {
    return this.#exchanges
      .flatMap(({ sent, received }) => [sent, received])
      .map(window => ({ sums: window.values().length, bytes: window.size }))
  }

  /** A sum sent at the current predictor; undefined if it is not kept. */
  sent(sequence: number): PackedBlocks | undefined {
    return this.#exchanges[0].sent.get(sequence)
  }

  /** The kept sum from which the next one is sent as a difference; 0 for none. */
  get base(): number {
    const [{ base, sent }] = this.#exchanges
    return sent.get(base) === undefined ? 0 : base
  }

  /** The sum is on its way to the neighbour, after all earlier ones. */
  recordSent(sequence: number, sum: Sum): void {
    const [current] = this.#exchanges
    current.sent.add(sequence, sum.map(packed))
    if (this.#isOrdered) current.base = sequence
  }

  /**
   * The neighbour has the current predictor.
   * @param held sequence number of the sum that it holds, 0 for none
   * @param received sequence number of the last frame that it has received
   */
  acknowledge(held: number, received: number): void {
    const [current] = this.#exchanges
    this.#received = received
    // A sum that has arrived and is not held, because the neighbour had another predictor, cannot
    // be referred to.
    const newest = current.sent.newest(received)
    const isLost = newest > 0 && newest !== held
    if (isLost || !this.#isOrdered) current.base = held
    current.sent.evictBefore(held)
  }

  /** The sums that are subtracted from a step at a predictor before it is sent. */
  references(parent: PredictorId): {
    readonly own: number
    readonly theirs: number
    readonly sums: readonly PackedBlocks[]
  } {
    const exchange = this.#exchanges.find(({ id }) => sameId(id, parent))
    const own = exchange?.sent.get(exchange.base)
    const theirs = exchange?.received.get(exchange.held)
    return {
      own: own ? (exchange?.base ?? 0) : 0,
      theirs: theirs ? (exchange?.held ?? 0) : 0,
      sums: [own, theirs].filter(sum => sum !== undefined)
    }
  }

  /**
   * Steps to send, the oldest one as a difference.
   * @param parent predictor before the oldest step
   */
  relative(steps: readonly Step[], parent: PredictorId): Chain {
    const { own, theirs, sums } = this.references(parent)
    if (sums.length === 0) return { kind: 'steps', steps, own: 0, theirs: 0 }
    const oldest = steps[steps.length - 1]
    const sum = expand(oldest, this.#shapes.parameters)
    const difference = stepOf(
      sum.map((block, b) => integerBlock(block, blocksAt(sums, b), this.#shapes.isClustered)),
      oldest.float32
    )
    recycle(sum)
    // With a bound of influence, the sums need not be parts of the batch, and the chain must not
    // become larger than the predictor.
    if (difference.bytes > oldest.bytes) return { kind: 'steps', steps, own: 0, theirs: 0 }
    return { kind: 'steps', steps: [...steps.slice(0, -1), difference], own, theirs }
  }

  /**
   * The frame with whole sums and steps in place of differences. Steps that differ from an unknown
   * sum are left out. Sums at earlier predictors are recorded as well, because steps may refer to
   * them.
   * @throws FrameError if a sum contains a number that is not a valid integer
   */
  absolute(frame: ReceivedFrame): ReceivedFrame {
    const { content, sum } = frame
    return {
      ...frame,
      content: content?.kind === 'steps' ? this.#absoluteSteps(content, frame) : content,
      sum: sum && this.#absoluteSum(sum, frame)
    }
  }

  #absoluteSum(received: ReceivedSum, { id, sequence }: ReceivedFrame): ReceivedSum {
    const { base, sum } = received
    const exchange = this.#exchanges.find(one => sameId(one.id, id)) ?? this.#passed(id)
    const reference = base === 0 ? [] : exchange.received.get(base)
    if (reference === undefined) return { ...received, coverage: undefined }
    const total = sum.map((block, b) => plus(block, base === 0 ? [] : [reference[b]]))
    if (!areIntegers(total)) throw new FrameError('sum with numbers that are not valid integers')
    // The neighbour no longer refers to older ones.
    exchange.received.evictBefore(base)
    record(exchange, sequence, total)
    return { ...received, sum: total }
  }

  /** The first sum at a predictor that this node has already replaced, or is about to adopt. */
  #passed(id: PredictorId): Exchange {
    const exchange = this.#create(id)
    const [current, ...past] = this.#exchanges
    this.#exchanges = [current, exchange, ...past.slice(0, PAST_EXCHANGES - 1)]
    return exchange
  }

  #absoluteSteps(chain: Chain, { headers }: ReceivedFrame): Chain {
    const { steps, own, theirs } = chain
    if (own === 0 && theirs === 0) return chain
    const { parent } = headers[steps.length - 1]
    const exchange = this.#exchanges.find(({ id }) => sameId(id, parent))
    // The sums that the sender calls its own were received here.
    const sums = [own === 0 ? [] : exchange?.received.get(own), theirs === 0 ? [] : exchange?.sent.get(theirs)]
    if (sums.includes(undefined)) return { ...chain, steps: [] }
    const known = sums.filter(sum => sum !== undefined && sum.length > 0) as PackedBlocks[]
    const total = expand(steps[steps.length - 1], this.#shapes.parameters).map((block, b) =>
      plus(block, blocksAt(known, b))
    )
    if (!areIntegers(total)) throw new FrameError('step with numbers that are not valid integers')
    const oldest = createStep(total, this.#shapes)
    return { kind: 'steps', steps: [...steps.slice(0, -1), oldest], own: 0, theirs: 0 }
  }
}

function bytesOf(sum: PackedBlocks): number {
  return sum.reduce((total, block) => total + packedBytes(block), 0)
}

function isUsed({ sent, received }: Exchange): boolean {
  return sent.values().length + received.values().length > 0
}

function record(exchange: Exchange, sequence: number, sum: Sum): void {
  exchange.received.add(sequence, sum.map(packed))
  exchange.held = sequence
}

/** One block of each vector. */
export function blocksAt(vectors: readonly PackedBlocks[], block: number): readonly PackedBlock[] {
  return vectors.map(vector => vector[block])
}

/** Adds to a block that was decoded for this purpose. */
function plus(block: SumBlock, references: readonly PackedBlock[]): SumBlock {
  for (const reference of references) addPacked(block, reference, 1)
  return block
}
