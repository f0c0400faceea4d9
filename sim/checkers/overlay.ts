/**
 * The overlay's invariants, looked at after every event of every node. Always: tree edges, those that both ends hold, form a forest; no
 * node has more than its degree; one session a pair; a node joins only an older fragment; and when a root's freeze is over,
 * all that stayed below it has taken part. Eventually: one tree, with one label.
 */
import { isOlder, type Label, type OverlayView, type SessionId, sameLabel } from '../../src/overlay/index.js'
import { Violation } from './violation.js'

/** A node of the overlay. */
export interface OverlaySite {
  readonly key: string
  /** Undefined while the node is down. */
  readonly view: OverlayView | undefined
  /** What is at the other end of a session that this node holds; undefined if that end's process is gone. */
  across(session: SessionId): Across | undefined
}

export interface Across {
  readonly site: OverlaySite
  /** The session's number there, if that end has taken it up. */
  readonly session: SessionId | undefined
  /** The session itself, the same object from both ends. */
  readonly link: object
}

interface Freeze {
  readonly label: Label
  /** Sessions of the subtree when it began. */
  readonly links: ReadonlySet<object>
}

export class OverlayChecker {
  readonly #sites: readonly OverlaySite[]
  readonly #degree: number
  /** The freeze under way at a root. */
  readonly #freezes = new Map<OverlaySite, Freeze>()

  /** @param sites all nodes @param degree most tree neighbours of a node */
  constructor(sites: readonly OverlaySite[], degree: number) {
    this.#sites = sites
    this.#degree = degree
  }

  /** A node has gone: what it was doing is forgotten. */
  stopped(site: OverlaySite): void {
    this.#freezes.delete(site)
  }

  /** After an event at a node that is up. @throws Violation */
  after(site: OverlaySite, before: OverlayView, after: OverlayView): void {
    this.#checkEdges(site, after)
    const { parent } = after
    if (parent !== undefined && parent.session !== before.parent?.session) {
      if (!isOlder(after.label, before.label))
        throw new Violation('overlay', `${site.key} joined a fragment that is not older`)
      // Only a new edge can close a cycle.
      this.#checkCycle(site)
    }
    for (const { session } of after.children) {
      if (before.children.some(child => child.session === session)) continue
      const child = site.across(session)?.site
      if (child !== undefined) this.#checkCycle(child)
    }
  }

  /** The part of `after` that a protocol without freeze need not keep. @throws Violation */
  afterFreeze(site: OverlaySite, view: OverlayView): void {
    const freeze = this.#freezes.get(site)
    if (freeze && !view.frozen && view.parent === undefined && sameLabel(freeze.label, view.label)) {
      this.#checkFrozen(site, view.label, freeze.links)
    }
    if (!view.frozen || view.parent !== undefined) this.#freezes.delete(site)
    else if (freeze === undefined || !sameLabel(freeze.label, view.label)) {
      this.#freezes.set(site, { label: view.label, links: this.#linksBelow(site) })
    }
  }

  /** What keeps the nodes that are up from being one tree at rest, if anything does. */
  unsettled(): Violation | undefined {
    const up = this.#sites.flatMap(({ view, key }) => (view ? [{ view, key }] : []))
    const roots = up.filter(({ view }) => view.parent === undefined)
    if (up.length > 0 && roots.length !== 1) {
      return new Violation('overlay', `there are ${roots.length} roots: ${roots.map(({ key }) => key).join(', ')}`)
    }
    const edges = this.#sites.filter(site => site.view && parentOf(site)).length
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

  #checkEdges({ key }: OverlaySite, { parent, children }: OverlayView): void {
    const peers = [...children, ...(parent ? [parent] : [])].map(({ peer }) => peer)
    if (peers.length > this.#degree)
      throw new Violation('overlay', `${key} has ${peers.length} edges of ${this.#degree}`)
    if (new Set(peers).size < peers.length) throw new Violation('overlay', `${key} has two edges with one peer`)
  }

  #checkCycle(start: OverlaySite): void {
    let at = parentOf(start)?.site
    for (let steps = 0; at !== undefined && steps <= this.#sites.length; steps++) {
      if (at === start) throw new Violation('overlay', `${start.key} is on a cycle`)
      at = parentOf(at)?.site
    }
  }

  /** All that was below from the start of the freeze has the root's label, and nothing has an older one. */
  #checkFrozen(root: OverlaySite, label: Label, links: ReadonlySet<object>): void {
    const visit = (at: OverlaySite, since: boolean): void => {
      for (const { child, link } of childrenOf(at)) {
        const stayed = since && links.has(link)
        const theirs = child.view?.label
        if (theirs && (stayed ? !sameLabel(theirs, label) : isOlder(theirs, label))) {
          throw new Violation('overlay', `the freeze of ${root.key} is over before ${child.key} took part`)
        }
        visit(child, stayed)
      }
    }
    visit(root, true)
  }

  #linksBelow(site: OverlaySite, links: Set<object> = new Set()): Set<object> {
    for (const { child, link } of childrenOf(site)) {
      if (links.has(link)) continue
      links.add(link)
      this.#linksBelow(child, links)
    }
    return links
  }
}

/** The parent of a node, if both ends hold the edge. */
export function parentOf(site: OverlaySite): Across | undefined {
  const { parent } = site.view ?? {}
  const across = parent && site.across(parent.session)
  return across?.site.view?.children.some(({ session }) => session === across.session) ? across : undefined
}

function childrenOf(site: OverlaySite): { readonly child: OverlaySite; readonly link: object }[] {
  const children = []
  for (const { session } of site.view?.children ?? []) {
    const across = site.across(session)
    if (across && parentOf(across.site)?.site === site) children.push({ child: across.site, link: across.link })
  }
  return children
}
