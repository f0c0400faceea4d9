/**
 * The predictor that a node currently holds, with what it needs to forward it and to adopt the next one: its parent, the
 * batch it was computed from, and its lineage.
 */

import { FrameError } from './bytes.js'
import type { Contributor } from './contributors.js'
import type { ReceivedFrame, Whole } from './frame.js'
import { HeaderCache } from './header-cache.js'
import { type Batch, type Header, nextPredictor, type Predictor, type Recipe } from './predictor.js'
import { compareIds, equivocates, formatId, type PredictorId, sameId } from './predictor-id.js'
import { isFinite32 } from './vectors.js'

/** A validated predictor from a frame, with its batch if it was sent as a step. */
export interface ReceivedPredictor {
  readonly predictor: Predictor
  readonly batch: Batch | undefined
}

/** Looks up a predictor that another node in the same process has computed, so that simulated nodes share it. */
export type PredictorLookup = (id: PredictorId) => Predictor | undefined

export class CurrentPredictor {
  readonly #recipe: Recipe
  readonly #batch: number
  readonly #headers: HeaderCache
  readonly #known: PredictorLookup
  #predictor: Predictor
  /** Kept so that steps from it can be replayed. */
  #parent: Predictor | undefined
  #step: Batch | undefined
  #lineage: readonly Header[] = []

  /**
   * @param batch b
   * @param headers maximum number of headers of a lineage
   * @param known predictors already in memory
   */
  constructor(
    initial: Predictor,
    recipe: Recipe,
    batch: number,
    headers: number,
    known: PredictorLookup = () => undefined
  ) {
    this.#predictor = initial
    this.#recipe = recipe
    this.#batch = batch
    this.#headers = new HeaderCache(headers)
    this.#known = known
  }

  get predictor(): Predictor {
    return this.#predictor
  }

  /** The batch from which the predictor was computed, if known. */
  get step(): Batch | undefined {
    return this.#step
  }

  /** Headers of the predictor and its ancestors, newest first, as far as they are kept. */
  get lineage(): readonly Header[] {
    return this.#lineage
  }

  /**
   * Orders an id against the current predictor: positive if it is better.
   * @throws FrameError on equivocation (same id, different digest)
   */
  compare(id: PredictorId): number {
    if (equivocates(id, this.#predictor.id)) {
      throw new FrameError(`equivocation: two contents of the predictor ${formatId(id)}`)
    }
    return compareIds(id, this.#predictor.id)
  }

  /** The predictor that an update with this batch yields; undefined if it is not finite. */
  next(batch: Batch, contributor: Contributor): Predictor | undefined {
    const predictor = nextPredictor(this.#predictor, batch, contributor, this.#recipe)
    return isFinitePredictor(predictor) ? predictor : undefined
  }

  /** @param chain headers of the predictor and its ancestors, newest first */
  switchPredictor(predictor: Predictor, chain: readonly Header[], step: Batch | undefined): void {
    const lineage = this.#headers.extend(chain)
    const parent = lineage[0]?.parent
    this.#parent = [this.#predictor, this.#parent].find(held => held && parent && sameId(held.id, parent))
    this.#predictor = predictor
    this.#step = step
    this.#lineage = lineage
  }

  /**
   * Validates the predictor of a frame: replays a step, or checks the digest of a whole predictor.
   * @returns undefined if the frame has no content, or a step whose parent is not held
   * @throws FrameError
   */
  receive({ content, id, headers }: ReceivedFrame): ReceivedPredictor | undefined {
    const header = headers[0]
    if (header && header.count < this.#batch) {
      throw new FrameError(`batch of ${header.count} gradients; at least ${this.#batch} are required`)
    }
    if (content === undefined) return undefined
    return content.kind === 'step'
      ? this.#replay({ sum: content.sum, count: header.count }, header)
      : this.#whole(content, id)
  }

  #whole({ parameters, average, state }: Whole, id: PredictorId): ReceivedPredictor {
    const known = this.#lookUp(id)
    if (known !== undefined) return { predictor: known, batch: undefined }
    if (this.#recipe.digest([parameters, average, state]) !== id.digest) {
      throw new FrameError('content does not match its digest')
    }
    return { predictor: { id, parameters, average, state }, batch: undefined }
  }

  #replay(batch: Batch, { id, parent: parentId }: Header): ReceivedPredictor | undefined {
    const parent = [this.#predictor, this.#parent].find(held => held && sameId(held.id, parentId))
    if (parent === undefined) return undefined
    if (parent.id.digest !== parentId.digest) throw new FrameError('equivocation: the parent has another digest')
    const known = this.#lookUp(id)
    if (known !== undefined) return { predictor: known, batch }
    const predictor = nextPredictor(parent, batch, id, this.#recipe)
    if (predictor.id.digest !== id.digest) throw new FrameError('replaying the step yields another digest')
    if (!isFinitePredictor(predictor)) throw new FrameError('replaying the step yields non-finite numbers')
    return { predictor, batch }
  }

  #lookUp(id: PredictorId): Predictor | undefined {
    const known = this.#known(id)
    return known?.id.digest === id.digest ? known : undefined
  }
}

function isFinitePredictor({ parameters, average, state }: Predictor): boolean {
  return isFinite32(parameters) && isFinite32(average) && isFinite32(state)
}
