/**
 * Properties 8 and 12: once inputs have stopped, every node of a tree names the best predictor, and every node's total is made
 * of all live gradients, without what rewiring left behind.
 */
import { compareIds, formatId } from '../../src/admb/index.js'
import type { Invariant, Site } from './invariant.js'
import { Violation } from './violation.js'

export class Quiescence implements Invariant {
  unsettled(sites: readonly Site[]): Violation | undefined {
    for (const tree of componentsOf(sites)) {
      const best = tree.map(({ node }) => node.predictor.id).reduce((a, b) => (compareIds(a, b) >= 0 ? a : b))
      const live = tree.reduce((sum, { node }) => sum + node.ownGradients, 0)
      for (const { origin, node } of tree) {
        const { id } = node.predictor
        if (compareIds(id, best) !== 0)
          return new Violation('quiescence', `${origin} holds ${formatId(id)} while the best is ${formatId(best)}`)
        if (node.gradients < live)
          return new Violation('quiescence', `${origin} holds ${node.gradients} of ${live} live gradients`)
        if (node.gradients > live)
          return new Violation('flush', `${origin} holds ${node.gradients} gradients where ${live} are alive`)
      }
    }
    return undefined
  }
}

/** Nodes that hang together by sessions that both ends hold. */
function componentsOf(sites: readonly Site[]): Site[][] {
  const byOrigin = new Map(sites.map(site => [site.origin, site]))
  const seen = new Set<Site>()
  const components: Site[][] = []
  for (const first of sites) {
    if (seen.has(first)) continue
    seen.add(first)
    const tree = [first]
    for (const site of tree) {
      for (const { peer, session } of site.edges.values()) {
        const other = byOrigin.get(peer)
        if (other === undefined || seen.has(other)) continue
        if (![...other.edges.values()].some(back => back.peer === site.origin && back.session === session)) continue
        seen.add(other)
        tree.push(other)
      }
    }
    components.push(tree)
  }
  return components
}
