/**
 * What only the exact learner (fuzz/counting.ts) can tell, as its sums and parameters count how often each input was used.
 * Property 3: every gradient of a batch was taken at its parent, or with carry-over at a predictor that its maker held at most
 * S periods before it took up the parent; each input once on any lineage. Property 4: counts are true. Property 5: no echo.
 * Property 11: with carry-over nothing is lost but by age.
 */
import { formatId, type PredictorId, sameId } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learner/index.js'
import type { CountingInputs } from '../fuzz/counting.js'
import type { Invariant, Site, Turn } from './invariant.js'
import { Violation } from './violation.js'

interface Gradient {
  readonly site: Site
  readonly at: PredictorId
  /** Period of the site in which it was taken. */
  readonly period: number
}

/** Periods of a site in which it took a predictor up and gave it up. */
interface Stay {
  readonly since: number
  until: number
}

export class ExactlyOnce implements Invariant {
  readonly #inputs: CountingInputs
  readonly #carry: number
  readonly #gradients: Gradient[] = []
  readonly #stays = new WeakMap<Site, Map<string, Stay>>()

  /** @param carry S */
  constructor(inputs: CountingInputs, carry: number) {
    this.#inputs = inputs
    this.#carry = carry
  }

  began(site: Site): void {
    this.#stays.set(site, new Map([[formatId(site.node.predictor.id), { since: 0, until: Number.POSITIVE_INFINITY }]]))
  }

  learned(site: Site): void {
    this.#gradients[this.#inputs.last] = { site, at: site.before.predictor.id, period: site.period }
  }

  turned(site: Site, turn: Turn): void {
    if (turn.how === 'updated') this.#checkUses(turn)
    const stays = this.#stays.get(site)
    const left = stays?.get(formatId(turn.parent.id))
    if (left) left.until = site.period
    stays?.set(formatId(turn.predictor.id), { since: site.period, until: Number.POSITIVE_INFINITY })
  }

  heard(site: Site, edge: number): void {
    const held = site.neighbourSum(edge)
    if (held === undefined) return
    const from = `the sum that ${site.origin} holds from ${site.edges.get(edge)?.peer}`
    let total = 0
    for (const [input, uses] of usesIn(held.sum)) {
      total += uses
      if (this.#gradients[input]?.site === site) throw new Violation('no echo', `${from} contains its input ${input}`)
    }
    if (total !== held.count) throw new Violation('size', `${from} states ${held.count} gradients and has ${total}`)
  }

  after(site: Site): void {
    if (this.#carry === 0 || site.node.predictor === site.before.predictor) return
    this.#checkCarried(site)
  }

  #checkUses(turn: Turn & { readonly how: 'updated' }): void {
    const { header, batch, predictor } = turn
    const key = formatId(predictor.id)
    let total = 0
    for (const [input, uses] of usesIn(batch.sum)) {
      total += uses
      const gradient = this.#gradients[input]
      if (gradient === undefined) throw new Violation('purity', `${key} used input ${input}, which nobody took`)
      if (predictor.parameters[0][input] > 1)
        throw new Violation(
          'purity',
          `input ${input} was used ${predictor.parameters[0][input]} times on the lineage of ${key}`
        )
      this.#checkAge(key, header.parent, input, gradient)
    }
    if (total !== batch.count) throw new Violation('size', `${key} states ${batch.count} gradients and has ${total}`)
  }

  #checkAge(key: string, parent: PredictorId, input: number, { site, at }: Gradient): void {
    if (sameId(at, parent)) return
    const what = `${key} used input ${input}, whose gradient ${site.origin} took at ${formatId(at)}`
    const stays = this.#stays.get(site)
    const taken = stays?.get(formatId(at))
    const stay = stays?.get(formatId(parent))
    if (this.#carry === 0 || taken === undefined || stay === undefined)
      throw new Violation('purity', `${what} and not at ${formatId(parent)}`)
    const age = stay.since - taken.until
    if (age > this.#carry) throw new Violation('purity', `${what}, ${age} periods before ${formatId(parent)}`)
  }

  /** After a change of predictor: of the own gradients that its lineage has not used, all young ones are there, and no other. */
  #checkCarried(site: Site): void {
    const { node, period, origin } = site
    const { id, parameters } = node.predictor
    const known = node.lineage.at(-1)?.parent.updates ?? Number.POSITIVE_INFINITY
    let young = 0
    let unused = 0
    this.#gradients.forEach((gradient, input) => {
      if (gradient.site !== site || parameters[0][input] > 0) return
      unused++
      if (gradient.at.updates >= known && period - gradient.period <= this.#carry) young++
    })
    const own = node.ownGradients
    if (own < young || own > unused) {
      const range = `${young} to ${unused} of its gradients are to be carried over`
      throw new Violation('conservation', `${origin} has ${own} at ${formatId(id)}, where ${range}`)
    }
  }
}

/** Inputs that a sum contains, and how often. */
function* usesIn([block]: Blocks): Iterable<readonly [input: number, uses: number]> {
  for (let input = 0; input < block.length; input++) if (block[input] !== 0) yield [input, block[input]]
}
