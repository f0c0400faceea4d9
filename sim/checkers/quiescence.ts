/**
 * Properties 8 (quiescence), 12 (flush) and `remainder`: after the end of inputs and faults, all nodes of a tree hold its best predictor, and
 * every node's sum contains all live gradients and no gradients left over from former links. When
 * the nodes have used what was left, no gradient is outside an update.
 */
import { compareIds, formatId } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant } from './invariant.js'

export class Quiescence implements Invariant {
  readonly #hasQuotas: boolean

  /** @param hasQuotas whether fewer than b gradients make no update */
  constructor(hasQuotas: boolean) {
    this.#hasQuotas = hasQuotas
  }

  checkEnd(nodes: readonly CheckedNode[]): Violation | undefined {
    if (this.#hasQuotas) return undefined
    const holder = nodes.find(({ node }) => node.gradients > 0)
    return (
      holder && new Violation('remainder', `${holder.origin} holds ${holder.node.gradients} gradients in no update`)
    )
  }

  checkQuiescence(nodes: readonly CheckedNode[]): Violation | undefined {
    for (const tree of componentsOf(nodes)) {
      const best = tree.map(({ node }) => node.predictor.id).reduce((a, b) => (compareIds(a, b) >= 0 ? a : b))
      const live = tree.reduce((sum, { node }) => sum + node.ownGradients, 0)
      for (const { origin, node } of tree) {
        const { id } = node.predictor
        if (compareIds(id, best) !== 0)
          return new Violation('quiescence', `${origin} holds ${formatId(id)} while the best is ${formatId(best)}`)
        if (node.gradients < live)
          return new Violation('quiescence', `${origin} holds ${node.gradients} of ${live} live gradients`)
        if (node.gradients > live)
          return new Violation('flush', `${origin} holds ${node.gradients} gradients, but only ${live} are live`)
      }
    }
    return undefined
  }
}

/** Components of nodes connected by sessions that are open at both ends. */
function componentsOf(nodes: readonly CheckedNode[]): CheckedNode[][] {
  const byOrigin = new Map(nodes.map(member => [member.origin, member]))
  const seen = new Set<CheckedNode>()
  const components: CheckedNode[][] = []
  for (const first of nodes) {
    if (seen.has(first)) continue
    seen.add(first)
    const tree = [first]
    for (const member of tree) {
      for (const { peer, session } of member.edges.values()) {
        const other = byOrigin.get(peer)
        if (other === undefined || seen.has(other)) continue
        if (![...other.edges.values()].some(back => back.peer === member.origin && back.session === session)) continue
        seen.add(other)
        tree.push(other)
      }
    }
    components.push(tree)
  }
  return components
}
