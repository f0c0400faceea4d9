/** Connected components by union-find: of the tree, and of peers that have held a common predictor. */

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

  /** Representative of the component of an item. */
  root(item: T): T {
    let root = item
    for (
      let parent = this.#parent.get(root);
      parent !== undefined && parent !== root;
      parent = this.#parent.get(root)
    ) {
      root = parent
    }
    // Path compression.
    this.#parent.set(item, root)
    return root
  }
}

/** Splits items into components, ordered by their first items. */
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

interface Linked {
  readonly id: string
  readonly neighbours: readonly string[]
}

/** Edges of the tree that both ends report. */
export function edgesOf(peers: readonly Linked[]): { readonly from: string; readonly to: string }[] {
  const neighboursOf = new Map(peers.map(({ id, neighbours }) => [id, new Set(neighbours)]))
  return [...neighboursOf].flatMap(([from, neighbours]) =>
    [...neighbours].filter(to => from < to && neighboursOf.get(to)?.has(from)).map(to => ({ from, to }))
  )
}

/** Connected components of the tree. */
export function treeComponents(peers: readonly Linked[]): string[][] {
  const components = new Components<string>()
  for (const { from, to } of edgesOf(peers)) components.join(from, to)
  return componentsOf(
    peers.map(({ id }) => id),
    components
  )
}
