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

interface Linked {
  readonly id: string
  readonly neighbours: readonly string[]
}

/** The tree's edges: those that both ends tell of. */
export function edgesOf(peers: readonly Linked[]): { readonly from: string; readonly to: string }[] {
  const neighboursOf = new Map(peers.map(({ id, neighbours }) => [id, new Set(neighbours)]))
  return [...neighboursOf].flatMap(([from, neighbours]) =>
    [...neighbours].filter(to => from < to && neighboursOf.get(to)?.has(from)).map(to => ({ from, to }))
  )
}

/** The parts that the tree falls into. */
export function treeComponents(peers: readonly Linked[]): string[][] {
  const components = new Components<string>()
  for (const { from, to } of edgesOf(peers)) components.join(from, to)
  return componentsOf(
    peers.map(({ id }) => id),
    components
  )
}
