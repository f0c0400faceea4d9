/**
 * The predictor that a node currently holds, with what it needs to forward it and to adopt the next
 * one: its parent, the last steps that led to it, and its lineage.
 */

import type { BatchRule } from '../../learning/types.js'
import { areIntegers } from '../../numeric/lattice.js'
import type { Contributor } from '../state/coverage.js'
import {
  type Batch,
  type Header,
  isFinitePredictor,
  isReused,
  nextPredictor,
  type Predictor,
  type Recipe,
  replayed,
  reuseArrays
} from '../state/predictor.js'
import { compareIds, idKey, type PredictorId, sameId } from '../state/predictor-id.js'
import { expand, keepChain, keptChainBytes, recycle, type Shapes, type Step } from '../state/vectors.js'
import { FrameError } from '../wire/bytes.js'
import {
  type Attestation,
  areLow,
  checkCount,
  FRAME_LIMITS,
  LINEAGE_LIMITS,
  lineageLength,
  type ReceivedFrame,
  sizeOfCoverages,
  type Whole
} from '../wire/frame.js'

/** A validated predictor from a frame. */
export interface ReceivedPredictor {
  readonly predictor: Predictor
  /** Its parent, if it was computed from it. */
  readonly parent?: Predictor
  /** The held predictor from which the steps lead to it. */
  readonly base?: Predictor
  /** The steps that were replayed, newest first. */
  readonly steps: readonly Step[]
  readonly attestation?: Attestation
}

/** Looks up a predictor that a node of this process has computed. Simulated nodes share it. */
export type PredictorLookup = (id: PredictorId) => Predictor | undefined

interface CurrentOptions extends Recipe {
  /** b */
  readonly batch: number | BatchRule
  /** Predictors already in memory. */
  readonly known?: PredictorLookup
  /** See `AdmbOptions`. */
  readonly reusesArrays?: boolean
}

export class CurrentPredictor {
  readonly #recipe: Recipe
  /** The largest b. */
  readonly #maxBatch: number
  readonly #headers: HeaderCache
  readonly #known: PredictorLookup
  readonly #initial: PredictorId
  readonly #reusesArrays: boolean
  #predictor: Predictor
  /** Parent of the predictor, from which steps can be replayed. */
  #parent: Predictor | undefined
  /** The last steps, those of the first headers of the lineage. */
  #steps: readonly Step[] = []
  #lineage: readonly Header[] = []
  #attestation: Attestation | undefined
  readonly #shapes: Shapes

  /** Whether an earlier predictor is served to others, who then need the steps from it. */
  isServing = false
  /** Requires more of the batches of steps that are replayed. */
  trust: { checkBatch(parent: Predictor, batch: Header & Pick<Batch, 'sum'>): void } | undefined

  /** @param headers maximum number of headers of a lineage */
  constructor(
    initial: Predictor,
    shapes: Shapes,
    { batch, known, reusesArrays = false, ...recipe }: CurrentOptions,
    headers: number
  ) {
    this.#predictor = initial
    this.#initial = initial.id
    this.#shapes = shapes
    this.#recipe = recipe
    this.#maxBatch = typeof batch === 'number' ? batch : batch.max
    this.#headers = new HeaderCache(headers)
    this.#reusesArrays = reusesArrays
    this.#known = known ?? (() => undefined)
  }

  get predictor(): Predictor {
    return this.#predictor
  }

  /** Number of steps kept, and their size in bytes. */
  get chain(): { readonly steps: number; readonly bytes: number } {
    return { steps: this.#steps.length, bytes: this.#steps.reduce((sum, { bytes }) => sum + bytes, 0) }
  }

  /** The steps from an ancestor to the predictor, newest first; undefined unless they are kept. */
  stepsFrom(ancestor: PredictorId): readonly Step[] | undefined {
    const count = this.#predictor.id.updates - ancestor.updates
    if (count < 1 || count > this.#steps.length || !sameId(this.#lineage[count - 1].parent, ancestor)) return undefined
    return count === this.#steps.length ? this.#steps : this.#steps.slice(0, count)
  }

  /** Headers of the predictor and its ancestors, newest first, as far as they are kept. Valid until the next event. */
  get lineage(): readonly Header[] {
    return this.#lineage
  }

  /** Attestation of the node from which the predictor came without a header. */
  get attestation(): Attestation | undefined {
    return this.#attestation
  }

  /** Orders an id against the current predictor: positive if it is better. */
  compare(id: PredictorId): number {
    return compareIds(id, this.#predictor.id)
  }

  /** Whether this is the current predictor, the starting one, or one whose header is kept. */
  holds(id: PredictorId): boolean {
    return this.compare(id) === 0 || sameId(id, this.#initial) || this.#headers.has(id)
  }

  /** Adds the contributors to which the headers refer. */
  mark(live: Set<number>): void {
    this.#headers.mark(live)
  }

  /** The predictor after an update; undefined if it or an integer of the sum is too large. */
  next(batch: Batch, contributor: Contributor): Predictor | undefined {
    if (this.#shapes.isLattice && !areIntegers(batch.sum)) return undefined
    this.#dropParent(this.#predictor)
    const predictor = nextPredictor(this.#predictor, batch, contributor, this.#recipe)
    return isFinitePredictor(predictor) ? predictor : undefined
  }

  /** The arrays of the parent become those of a predictor that follows from the current one, so that there are never three. */
  #dropParent(base: Predictor): void {
    if (!this.#reusesArrays || base !== this.#predictor || this.#parent === undefined) return
    reuseArrays(this.#parent, [this.#predictor])
    this.#parent = undefined
  }

  /**
   * Holds another predictor.
   * @param chain headers of the predictor and its ancestors, newest first
   * @param received the predictor, with the steps that led to it from one that this node holds
   */
  switchPredictor(chain: readonly Header[], { predictor, parent, steps, attestation }: ReceivedPredictor): void {
    const parentBefore = this.#lineage[0]?.parent
    const lineage = this.#headers.extend(chain)
    const parentId = lineage[0]?.parent
    const held = [parent, this.#predictor, this.#parent]
    this.#parent = held.find(one => one && parentId && sameId(one.id, parentId) && !isReused(one))
    const base = lineage[steps.length - 1]?.parent
    const older = base ? this.#stepsBefore(base, parentBefore) : []
    this.#predictor = predictor
    this.#steps = keepChain([...steps, ...older], keptChainBytes(this.#shapes, this.isServing)).slice(0, lineage.length)
    this.#lineage = lineage
    this.#attestation = attestation
    if (!this.#reusesArrays) return
    for (const one of held)
      if (one && one !== predictor && one !== this.#parent) reuseArrays(one, [predictor, this.#parent])
  }

  /** The steps kept that led to `base`, which is the current predictor or its parent. */
  #stepsBefore(base: PredictorId, parent: PredictorId | undefined): readonly Step[] {
    if (sameId(base, this.#predictor.id)) return this.#steps
    return parent !== undefined && sameId(base, parent) ? this.#steps.slice(1) : []
  }

  /**
   * The predictor of a frame: replayed from its steps, or whole with a checked digest.
   * @returns undefined if the frame has no content, or steps from a predictor that is not held
   * @throws FrameError
   */
  validated({ content, id, headers, attestation }: ReceivedFrame): ReceivedPredictor | undefined {
    if (content === undefined) return undefined
    this.checkHeaders(headers)
    return content.kind === 'steps'
      ? this.#replay(content.steps, headers)
      : { ...this.#whole(content, id), attestation }
  }

  /** Checks the numbers of gradients in batches. @throws FrameError */
  checkHeaders(headers: readonly Header[]): void {
    for (const { count, coverage } of headers) checkCount(count, coverage, this.#maxBatch)
  }

  #whole({ parameters, average, state }: Whole, id: PredictorId): ReceivedPredictor {
    const known = this.#lookUp(id)
    if (known !== undefined) return { predictor: known, steps: [] }
    if (this.#recipe.digest([parameters, average, state]) !== id.digest) {
      throw new FrameError('content does not match its digest')
    }
    return { predictor: { id, parameters, average, state }, steps: [] }
  }

  /** @param steps those of the first headers, newest first; the oldest may be known already */
  #replay(steps: readonly Step[], headers: readonly Header[]): ReceivedPredictor | undefined {
    for (const [i, { parent: baseId }] of headers.slice(0, steps.length).entries()) {
      const base = [this.#predictor, this.#parent].find(held => held && sameId(held.id, baseId))
      if (base === undefined) continue
      let parent = base
      let predictor = base
      for (let step = i; step >= 0; step--) {
        parent = predictor
        predictor = this.#replayStep(parent, steps[step], headers[step])
      }
      return { predictor, parent, base, steps: steps.slice(0, i + 1) }
    }
    return undefined
  }

  #replayStep(parent: Predictor, step: Step, header: Header): Predictor {
    const { id } = header
    const known = this.#lookUp(id)
    if (known !== undefined) return known
    const sum = expand(step, this.#shapes.parameters)
    if (this.#shapes.isLattice && !areIntegers(sum))
      throw new FrameError('step with numbers that are not valid integers')
    this.trust?.checkBatch(parent, { ...header, sum })
    this.#dropParent(parent)
    const predictor = replayed(parent, sum, header, this.#recipe)
    // Dense blocks are those of the step.
    recycle(sum.filter((block, b) => block !== step.blocks[b]))
    if (predictor.id.digest !== id.digest) throw new FrameError('replaying the step yields another digest')
    if (!isFinitePredictor(predictor)) throw new FrameError('replaying the step yields non-finite numbers')
    return predictor
  }

  #lookUp(id: PredictorId): Predictor | undefined {
    const known = this.#known(id)
    return known?.id.digest === id.digest ? known : undefined
  }
}

/** Number of full-length branches that fit. */
const BRANCHES = 4

/**
 * Headers of recent predictors on any branch. A neighbour sends headers back to the predictor that
 * this node has reported; when they arrive, the node may have switched to another branch. Without
 * the headers of the first branch the lineage would end there, and unused gradients would count as
 * used.
 */
export class HeaderCache {
  readonly #limit: number
  /** Headers by predictor id, in order of insertion. */
  readonly #headers = new Map<string, Header>()
  /** Total number of contributors in their coverages. */
  #contributors = 0
  /** The lineage returned last: the next one mostly extends it. */
  #last: Header[] = []
  /** Total number of contributors in its coverages. */
  #lastSize = 0
  /** Whether all contributors of that many are known to have low indices. */
  #isLastLow = false

  /** @param limit maximum number of headers of a lineage */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Extends received headers with cached headers of their ancestors, and caches them.
   * @param chain newest first, each the parent of the previous one
   * @returns the lineage, newest first, valid until the next call
   */
  extend(chain: readonly Header[]): readonly Header[] {
    for (const header of chain) this.#add(header)
    const oldest = chain.at(-1)
    const from = oldest ? this.#last.findIndex(({ id }) => sameId(id, oldest.parent)) : -1
    // The last lineage may contain headers that the cache has not, and the cache older ones.
    if (from === 0) this.#last.unshift(...chain)
    const joined = from < 0 ? [...chain] : from === 0 ? this.#last : chain.concat(this.#last.slice(from))
    const lineage = from === 0 ? joined : this.#extendFromCache(joined)
    const isExtended = from >= 0 && lineage.length === joined.length
    this.#shorten(lineage, isExtended ? chain : lineage, isExtended ? from : this.#last.length)
    this.#dropOldest()
    this.#last = lineage
    return lineage
  }

  /** Many at a time, as finding the first entry of a map takes time for each that was deleted before. */
  #dropOldest(): void {
    const most = BRANCHES * this.#limit
    if (this.#contributors <= LINEAGE_LIMITS.any && this.#headers.size <= most + this.#limit / 4) return
    for (const [key, { coverage }] of this.#headers) {
      if (this.#contributors <= LINEAGE_LIMITS.any && this.#headers.size <= most) return
      this.#headers.delete(key)
      this.#contributors -= coverage.size
    }
  }

  /**
   * Shortens a lineage to the limits.
   * @param added its first headers, which are not of the last lineage
   * @param from index of the header of the last lineage that follows them
   */
  #shorten(lineage: Header[], added: readonly Header[], from: number): void {
    const shared = this.#lastSize - sizeOfCoverages(this.#last, 0, from)
    const size = shared + sizeOfCoverages(added) - sizeOfCoverages(lineage, this.#limit)
    lineage.length = Math.min(lineage.length, this.#limit)
    // Few contributors need no look at their indices.
    const isMany = size > FRAME_LIMITS.contributors
    this.#isLastLow = isMany && (this.#isLastLow ? added : lineage).every(areLow)
    const length = lineageLength(lineage, size, this.#isLastLow)
    this.#lastSize = size - sizeOfCoverages(lineage, length)
    lineage.length = length
  }

  /** Whether the header of this predictor, or of a child of it on the last lineage, is known. */
  has(id: PredictorId): boolean {
    const oldest = this.#last.at(-1)
    return this.#headers.has(idKey(id)) || (oldest !== undefined && sameId(oldest.parent, id))
  }

  #add(header: Header): void {
    const key = idKey(header.id)
    this.#contributors += header.coverage.size - (this.#headers.get(key)?.coverage.size ?? 0)
    this.#headers.set(key, header)
  }

  /** Adds the contributors in the coverages of all headers. */
  mark(live: Set<number>): void {
    for (const { coverage } of [...this.#headers.values(), ...this.#last])
      for (const contributor of coverage.contributors) live.add(contributor)
  }

  /** The chain with all ancestors found in the cache. */
  #extendFromCache(chain: readonly Header[]): Header[] {
    const lineage = chain.slice()
    while (lineage.length > 0 && lineage.length < this.#limit) {
      const parent = this.#headers.get(idKey(lineage[lineage.length - 1].parent))
      if (parent === undefined) break
      lineage.push(parent)
    }
    return lineage
  }
}
