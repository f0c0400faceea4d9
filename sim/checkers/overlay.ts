/**
 * The overlay's invariants, checked after every event of every node. Always: tree edges (held by both ends) form a forest; no node
 * exceeds its degree; each pair of nodes has at most one edge; a node joins only an older fragment; and when a root's freeze ends, all
 * nodes that stayed below it have taken part. Eventually: one tree, with one label.
 */
import { isOlder, type Label, type OverlayView, type SessionId, sameLabel } from '../../src/overlay/index.js'
import { Violation } from '../result.js'

/** An overlay node, as the checker needs it. */
export interface CheckedOverlayNode {
  readonly key: string
  /** Undefined while the node is down. */
  readonly view: OverlayView | undefined
  /** The other end of a session of this node; undefined if that end's process has ended. */
  remoteEndpoint(session: SessionId): OverlayEndpoint | undefined
}

export interface OverlayEndpoint {
  readonly node: CheckedOverlayNode
  /** Number of the session at that end, if it has accepted the session. */
  readonly session: SessionId | undefined
  /** The session itself, the same object for both ends. */
  readonly link: object
}

interface Freeze {
  readonly label: Label
  /** Sessions of the subtree when the freeze started. */
  readonly links: ReadonlySet<object>
}

export class OverlayChecker {
  readonly #nodes: readonly CheckedOverlayNode[]
  readonly #degree: number
  /** The current freeze of each root. */
  readonly #freezes = new Map<CheckedOverlayNode, Freeze>()

  /** @param nodes all nodes @param degree maximum number of tree neighbours of a node */
  constructor(nodes: readonly CheckedOverlayNode[], degree: number) {
    this.#nodes = nodes
    this.#degree = degree
  }

  /** Call when a node stops. */
  stopped(node: CheckedOverlayNode): void {
    this.#freezes.delete(node)
  }

  /** Checks a node that is up after an event. @throws Violation */
  after(node: CheckedOverlayNode, before: OverlayView, after: OverlayView): void {
    this.#checkEdges(node, after)
    const { parent } = after
    if (parent !== undefined && parent.session !== before.parent?.session) {
      if (!isOlder(after.label, before.label))
        throw new Violation('overlay', `${node.key} joined a fragment that is not older`)
      // Only a new edge can close a cycle.
      this.#checkCycle(node)
    }
    for (const { session } of after.children) {
      if (before.children.some(child => child.session === session)) continue
      const child = node.remoteEndpoint(session)?.node
      if (child !== undefined) this.#checkCycle(child)
    }
  }

  /** Checks the freeze after an event; separate from `after` for protocols without a freeze. @throws Violation */
  afterFreeze(node: CheckedOverlayNode, view: OverlayView): void {
    const freeze = this.#freezes.get(node)
    if (freeze && !view.frozen && view.parent === undefined && sameLabel(freeze.label, view.label)) {
      this.#checkFrozen(node, view.label, freeze.links)
    }
    if (!view.frozen || view.parent !== undefined) this.#freezes.delete(node)
    else if (freeze === undefined || !sameLabel(freeze.label, view.label)) {
      this.#freezes.set(node, { label: view.label, links: this.#linksBelow(node) })
    }
  }

  /** In the final phase: the reason why the nodes that are up do not form a single tree yet. */
  checkQuiescence(): Violation | undefined {
    const up = this.#nodes.flatMap(({ view, key }) => (view ? [{ view, key }] : []))
    const roots = up.filter(({ view }) => view.parent === undefined)
    if (up.length > 0 && roots.length !== 1) {
      return new Violation('overlay', `there are ${roots.length} roots: ${roots.map(({ key }) => key).join(', ')}`)
    }
    const edges = this.#nodes.filter(node => node.view && parentOf(node)).length
    if (up.length > 0 && edges !== up.length - 1) {
      return new Violation('overlay', `${up.length} nodes have ${edges} edges that both ends hold`)
    }
    for (const { view, key } of up) {
      if (view.frozen) return new Violation('overlay', `${key} is frozen`)
      if (!sameLabel(view.label, up[0].view.label))
        return new Violation('overlay', `${key} has another label than ${up[0].key}`)
    }
    return undefined
  }

  #checkEdges({ key }: CheckedOverlayNode, { parent, children }: OverlayView): void {
    const peers = [...children, ...(parent ? [parent] : [])].map(({ peer }) => peer)
    if (peers.length > this.#degree)
      throw new Violation('overlay', `${key} has ${peers.length} edges of ${this.#degree}`)
    if (new Set(peers).size < peers.length) throw new Violation('overlay', `${key} has two edges with one peer`)
  }

  #checkCycle(start: CheckedOverlayNode): void {
    let ancestor = parentOf(start)?.node
    for (let steps = 0; ancestor !== undefined && steps <= this.#nodes.length; steps++) {
      if (ancestor === start) throw new Violation('overlay', `${start.key} is on a cycle`)
      ancestor = parentOf(ancestor)?.node
    }
  }

  /** All nodes below the root since the start of the freeze have its label, and no node below has an older one. */
  #checkFrozen(root: CheckedOverlayNode, label: Label, links: ReadonlySet<object>): void {
    const visit = (parent: CheckedOverlayNode, parentStayed: boolean): void => {
      for (const { child, link } of childrenOf(parent)) {
        const stayed = parentStayed && links.has(link)
        const childLabel = child.view?.label
        if (childLabel && (stayed ? !sameLabel(childLabel, label) : isOlder(childLabel, label))) {
          throw new Violation('overlay', `the freeze of ${root.key} ended before ${child.key} took part`)
        }
        visit(child, stayed)
      }
    }
    visit(root, true)
  }

  #linksBelow(node: CheckedOverlayNode, links: Set<object> = new Set()): Set<object> {
    for (const { child, link } of childrenOf(node)) {
      if (links.has(link)) continue
      links.add(link)
      this.#linksBelow(child, links)
    }
    return links
  }
}

/** The parent of a node, if both ends hold the edge. */
export function parentOf(node: CheckedOverlayNode): OverlayEndpoint | undefined {
  const { parent } = node.view ?? {}
  const endpoint = parent && node.remoteEndpoint(parent.session)
  return endpoint?.node.view?.children.some(({ session }) => session === endpoint.session) ? endpoint : undefined
}

function childrenOf(node: CheckedOverlayNode): { readonly child: CheckedOverlayNode; readonly link: object }[] {
  const children = []
  for (const { session } of node.view?.children ?? []) {
    const endpoint = node.remoteEndpoint(session)
    if (endpoint && parentOf(endpoint.node)?.node === node) children.push({ child: endpoint.node, link: endpoint.link })
  }
  return children
}
