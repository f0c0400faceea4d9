/**
 * The predictor that a node holds, with what is needed to pass it on and to take over the next one: the parent it came
 * from, the batch that made it, its lineage.
 */

import { FrameError } from './bytes.js'
import type { Contributor } from './contributors.js'
import type { ReceivedFrame, Whole } from './frame.js'
import { HeaderCache } from './header-cache.js'
import { type Batch, type Header, nextPredictor, type Predictor, type Recipe } from './predictor.js'
import { compareIds, equivocates, type PredictorId, sameId } from './predictor-id.js'
import { isFinite32 } from './vectors.js'

/** A predictor that came from elsewhere, checked; with its batch if it came as a step. */
export interface ReceivedPredictor {
  readonly predictor: Predictor
  readonly batch: Batch | undefined
}

/** Finds a predictor that somebody else in the same memory made, so that many nodes can share it. */
export type PredictorLookup = (id: PredictorId) => Predictor | undefined

export class CurrentPredictor {
  readonly #recipe: Recipe
  readonly #batch: number
  readonly #headers: HeaderCache
  readonly #known: PredictorLookup
  #predictor: Predictor
  /** Kept so that a step made elsewhere from it can be replayed. */
  #parent: Predictor | undefined
  #step: Batch | undefined
  #lineage: readonly Header[] = []

  /**
   * @param batch b
   * @param headers the greatest number of headers of a lineage
   * @param known predictors that are at hand already
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

  /** The batch that made the predictor from its parent, where it is known. */
  get step(): Batch | undefined {
    return this.#step
  }

  /** Headers of the predictor and its ancestors, newest first, as far as they are kept. */
  get lineage(): readonly Header[] {
    return this.#lineage
  }

  /** Order of a name against the predictor held. Throws FrameError when one name stands for two contents. */
  compare(id: PredictorId): number {
    if (equivocates(id, this.#predictor.id)) {
      throw new FrameError(`two different predictors are named ${id.updates} updates by ${id.origin || 'nobody'}`)
    }
    return compareIds(id, this.#predictor.id)
  }

  /** The predictor that an update with that batch would make; undefined if it is not finite. */
  next(batch: Batch, contributor: Contributor): Predictor | undefined {
    const predictor = nextPredictor(this.#predictor, batch, contributor, this.#recipe)
    return isFinitePredictor(predictor) ? predictor : undefined
  }

  /** Takes up another predictor. @param chain its header and those of ancestors, newest first */
  switchPredictor(predictor: Predictor, chain: readonly Header[], step: Batch | undefined): void {
    const lineage = this.#headers.extend(chain)
    const parent = lineage[0]?.parent
    this.#parent = [this.#predictor, this.#parent].find(held => held && parent && sameId(held.id, parent))
    this.#predictor = predictor
    this.#step = step
    this.#lineage = lineage
  }

  /**
   * The predictor that a frame carries, replayed or taken over, its digest checked.
   * @returns undefined if it carries none, or a step whose parent is not held
   * @throws FrameError
   */
  receive({ content, id, headers }: ReceivedFrame): ReceivedPredictor | undefined {
    const header = headers[0]
    if (header && header.count < this.#batch) {
      throw new FrameError(`a batch of ${header.count} gradients where ${this.#batch} are needed`)
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
    if (parent.id.digest !== parentId.digest) throw new FrameError('a step from another parent of the same name')
    const known = this.#lookUp(id)
    if (known !== undefined) return { predictor: known, batch }
    const predictor = nextPredictor(parent, batch, id, this.#recipe)
    if (predictor.id.digest !== id.digest) throw new FrameError('replaying the step gives another predictor')
    if (!isFinitePredictor(predictor)) throw new FrameError('replaying the step gives numbers that are not finite')
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
