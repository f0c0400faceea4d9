/** Properties 1 and 2: what a name stands for, and that names only improve. */
import { compareIds, formatId, type Predictor } from '../../src/admb/index.js'
import { fingerprint } from './fingerprint.js'
import type { Invariant, Site, Turn } from './invariant.js'
import { Violation } from './violation.js'

/** Equal name ⇒ bit-equal parameters, average and rule state; and every predictor was made by somebody, once. */
export class Identity implements Invariant {
  readonly #contents = new Map<string, number>()

  /** What a node starts from is made by nobody. */
  began({ node: { predictor } }: Site): void {
    const key = formatId(predictor.id)
    if (!this.#contents.has(key)) this.#contents.set(key, fingerprint(predictor))
  }

  turned({ origin, incarnation }: Site, { how, predictor }: Turn): void {
    const { id } = predictor
    const key = formatId(id)
    const content = fingerprint(predictor)
    const known = this.#contents.get(key)
    if (how === 'updated') {
      if (id.origin !== origin || id.incarnation !== incarnation)
        throw new Violation('identity', `${origin}#${incarnation} made ${key}, a name of another`)
      if (known !== undefined) throw new Violation('identity', `${origin}#${incarnation} made ${key} a second time`)
      this.#contents.set(key, content)
    } else if (known === undefined) throw new Violation('identity', `${origin} ${how} ${key}, which nobody made`)
    else if (known !== content) throw new Violation('identity', `${origin} ${how} another content as ${key}`)
  }
}

/** Within an incarnation a node's name strictly improves at each change, so that nothing abandoned returns. */
export class Monotone implements Invariant {
  /** What each node turned to last. */
  readonly #held: Predictor[] = []

  began({ index, node }: Site): void {
    this.#held[index] = node.predictor
  }

  turned({ index, origin }: Site, { how, predictor }: Turn): void {
    const { id } = this.#held[index]
    if (how !== 'restored' && compareIds(predictor.id, id) <= 0)
      throw new Violation('monotone', `${origin} went from ${formatId(id)} to ${formatId(predictor.id)}`)
    this.#held[index] = predictor
  }

  after({ index, origin, node }: Site): void {
    if (node.predictor !== this.#held[index])
      throw new Violation('monotone', `${origin} changed to ${formatId(node.predictor.id)} without a word`)
  }
}
