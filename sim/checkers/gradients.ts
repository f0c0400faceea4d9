/**
 * Property 11 for every learner: own gradients are lost only by a change of predictor or with the node, never by rewiring.
 * What a change of predictor may take with carry-over, the exact learner tells (exact.ts).
 */
import type { Invariant, Occurrence, Site } from './invariant.js'
import { Violation } from './violation.js'

export class Conservation implements Invariant {
  readonly #carry: number

  /** @param carry S */
  constructor(carry: number) {
    this.#carry = carry
  }

  after({ origin, node, before }: Site, what: Occurrence, count: number): void {
    const own = node.ownGradients
    if (node.predictor === before.predictor) {
      if (own !== before.own + count)
        throw new Violation(
          'conservation',
          `${origin} had ${before.own} own gradients, ${what} ${count}, and has ${own}`
        )
    } else if (this.#carry === 0 && own !== 0)
      throw new Violation('conservation', `${origin} carries ${own} gradients over, with a carry-over of 0`)
  }
}
