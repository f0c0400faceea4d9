/** Properties 5, 6 and 7: what crosses an edge, and that an honest frame is never refused. */
import { formatId, type Predictor, type PredictorId, sameId } from '../../src/admb/index.js'
import type { Invariant, Site, Turn } from './invariant.js'
import { Violation } from './violation.js'

/** No node holds a sum that contains its own gradients. */
export class NoEcho implements Invariant {
  heard(site: Site, edge: number): void {
    const { origin, incarnation } = site
    for (const contributor of site.neighbourSum(edge)?.contributors ?? []) {
      if (contributor.origin === origin && contributor.incarnation === incarnation)
        throw new Violation('no echo', `the sum that ${origin} holds from ${peerOf(site, edge)} contains its own`)
    }
  }
}

/** A frame that comes again, at once or after later ones, changes nothing. */
export class Idempotence implements Invariant {
  /** The last frame of each edge of each node, in its session. */
  readonly #last = new WeakMap<Site, Map<number, { readonly frame: Uint8Array; readonly session: number }>>()

  heard(site: Site, edge: number, frame: Uint8Array): void {
    const session = site.edges.get(edge)?.session
    if (session === undefined) return
    let last = this.#last.get(site)
    if (last === undefined) {
      last = new Map()
      this.#last.set(site, last)
    }
    const earlier = last.get(edge)
    this.#again(site, edge, frame)
    if (earlier?.session === session) this.#again(site, edge, earlier.frame)
    last.set(edge, { frame, session })
  }

  #again(site: Site, edge: number, frame: Uint8Array): void {
    const { node, origin } = site
    const { predictor, gradients, ownGradients } = node
    const held = site.neighbourSum(edge)?.count
    node.receive(edge, frame)
    const isSame =
      node.takeEffects().length === 0 &&
      node.predictor === predictor &&
      node.gradients === gradients &&
      node.ownGradients === ownGradients &&
      node.neighbourSum(edge)?.count === held
    if (!isSame)
      throw new Violation('idempotence', `a frame from ${peerOf(site, edge)} changed ${origin} when it came again`)
  }
}

/**
 * The count held for an edge, per session and predictor, never falls; unless a link was lost anywhere since that predictor was
 * made, for then what lies behind that link leaves the sums.
 */
export class EdgeMonotone implements Invariant {
  /** Links lost so far. */
  #cuts = 0
  /** Links lost when a predictor was made. */
  readonly #cutsAtBirth = new Map<string, number>()
  readonly #held = new WeakMap<Site, Map<number, { readonly name: PredictorId; readonly count: number }>>()

  constructor(start: Predictor) {
    this.#cutsAtBirth.set(formatId(start.id), 0)
  }

  began(site: Site): void {
    this.#held.set(site, new Map())
  }

  turned(_site: Site, { how, predictor }: Turn): void {
    if (how === 'updated') this.#cutsAtBirth.set(formatId(predictor.id), this.#cuts)
  }

  linked(site: Site, edge: number): void {
    this.#held.get(site)?.delete(edge)
  }

  unlinked(): void {
    this.#cuts++
  }

  heard(site: Site, edge: number): void {
    const { id } = site.node.predictor
    const counts = this.#held.get(site)
    const last = counts?.get(edge)
    const count = site.neighbourSum(edge)?.count ?? 0
    if (last && count < last.count && sameId(last.name, id) && this.#cutsAtBirth.get(formatId(id)) === this.#cuts) {
      const where = `${site.origin} holds from ${peerOf(site, edge)}`
      throw new Violation(
        'edge monotone',
        `the sum for ${formatId(id)} that ${where} fell from ${last.count} to ${count}`
      )
    }
    if (count !== last?.count || last.name !== id) counts?.set(edge, { name: id, count })
  }
}

/** Honest nodes never refuse one another's frames. */
export class Acceptance implements Invariant {
  refused(site: Site, edge: number, reason: string): void {
    throw new Violation('acceptance', `${site.origin} refused a frame of ${peerOf(site, edge)}: ${reason}`)
  }
}

function peerOf(site: Site, edge: number): string {
  return site.edges.get(edge)?.peer ?? `edge ${edge}`
}
