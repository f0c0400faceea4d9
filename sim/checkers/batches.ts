/** Properties 4 and 10: how large batches are, and that replaying them gives the predictors again. */
import { formatId, nextPredictor, type Recipe, sameId } from '../../src/admb/index.js'
import { fingerprint } from './fingerprint.js'
import type { Invariant, Site, Turn } from './invariant.js'
import { Violation } from './violation.js'

/** A batch has at least b gradients, and a node that holds b of them makes its update. */
export class Size implements Invariant {
  readonly #batch: number

  constructor(batch: number) {
    this.#batch = batch
  }

  turned({ origin }: Site, turn: Turn): void {
    if (turn.how !== 'updated') return
    const { header, batch } = turn
    const key = formatId(header.id)
    if (batch.count < this.#batch)
      throw new Violation('size', `${origin} made ${key} from ${batch.count} of ${this.#batch} gradients`)
    if (header.count !== batch.count)
      throw new Violation('size', `the header of ${key} states ${header.count} of ${batch.count} gradients`)
  }

  after({ origin, node }: Site): void {
    if (node.gradients >= this.#batch)
      throw new Violation('size', `${origin} holds ${node.gradients} gradients and makes no update of ${this.#batch}`)
  }
}

/**
 * The batch replayed on the parent gives the predictor, bit for bit. As equal names stand for equal bits, so does the whole
 * log of a lineage.
 */
export class Lineage implements Invariant {
  readonly #recipe: Recipe

  constructor(recipe: Recipe) {
    this.#recipe = recipe
  }

  turned({ origin }: Site, turn: Turn): void {
    if (turn.how !== 'updated') return
    const { parent, predictor, header, batch } = turn
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
