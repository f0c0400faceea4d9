/** Connected components, by union-find: of the known tree, and of peers that have held predictors in common. */

export class Components<T> {
  readonly #parent = new Map<T, T>()

  add(item: T): void {
    if (!this.#parent.has(item)) this.#parent.set(item, item)
  }

  join(a: T, b: T): void {
    this.add(a)
    this.add(b)
    this.#parent.set(this.root(a), this.root(b))
  }

  /** Stands for the component of an item that was added. */
  root(item: T): T {
    let root = item
    for (
      let parent = this.#parent.get(root);
      parent !== undefined && parent !== root;
      parent = this.#parent.get(root)
    ) {
      root = parent
    }
    // The way is short next time.
    this.#parent.set(item, root)
    return root
  }
}

/** Splits items into components, in the order of their first items. */
export function componentsOf<T>(items: readonly T[], components: Components<T>): T[][] {
  const byRoot = new Map<T, T[]>()
  for (const item of items) {
    components.add(item)
    const root = components.root(item)
    const component = byRoot.get(root)
    if (component) component.push(item)
    else byRoot.set(root, [item])
  }
  return [...byRoot.values()]
}

/** The parts that the tree falls into. An edge counts when both its ends tell of it. */
export function treeParts(
  peers: readonly { readonly id: string; readonly neighbours: readonly string[] }[]
): string[][] {
  const neighbours = new Map(peers.map(peer => [peer.id, new Set(peer.neighbours)]))
  const components = new Components<string>()
  for (const [id, others] of neighbours) {
    for (const other of others) if (neighbours.get(other)?.has(id)) components.join(id, other)
  }
  return componentsOf([...neighbours.keys()], components)
}
