/**
 * Groups of peers that follow the same predictor: peers that have held a common predictor within the last seconds, directly or
 * transitively, and tree neighbours that were in a group before. They are connected components, found by union-find.
 */

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

/** Number of past calls (two per second) whose update counts are kept; so long before a merge, the groups were still separate. */
const HISTORY = 6

/**
 * Groups of peers that follow the same predictor: peers that have held a common predictor within the last seconds, directly or
 * transitively, and tree neighbours that were in one group before.
 * The page shows a group's number as a colour, so numbers are stable: when a group splits, the larger part keeps the number; when
 * groups merge, the number of the group with more updates remains, because its predictor is adopted by the others. The update
 * counts from before the merge are compared: afterwards the others may already have reported the adopted updates.
 */
interface Follower {
  readonly id: string
  readonly updates: number
  /** Short digests of the predictors held recently. */
  readonly held: Iterable<string>
  /** Ids of its tree neighbours. */
  readonly neighbours: readonly string[]
}

/** Peers that have adopted the predictor of another group. */
interface Adoption {
  readonly peers: readonly string[]
  /** Their new group. */
  readonly group: number
}

interface Group {
  readonly members: readonly string[]
  readonly updates: number
}

export class Groups {
  readonly #numbers = new Map<string, number>()
  /** Maximum number of updates in each group at the last calls, oldest first. */
  #updates = new Map<number, readonly number[]>()

  /** Number of a peer's group; the last one if the peer is no longer among the followers. */
  of(id: string): number | undefined {
    return this.#numbers.get(id)
  }

  forget(id: string): void {
    this.#numbers.delete(id)
  }

  /** Regroups the followers; other peers keep their numbers. */
  assign(followers: readonly Follower[]): Adoption[] {
    const groups = formGroups(
      followers,
      (a, b) => this.#numbers.has(a) && this.#numbers.get(a) === this.#numbers.get(b)
    )
    const taken = new Set<number>()
    const numbers = new Map<string, number>()
    const updates = new Map<number, readonly number[]>()
    for (const group of groups) {
      const number = this.#number(group, taken)
      taken.add(number)
      for (const id of group.members) numbers.set(id, number)
      updates.set(number, [...(this.#updates.get(number) ?? []), group.updates].slice(-HISTORY))
    }
    const adoptions = groups.flatMap(({ members }) => {
      const group = numbers.get(members[0]) as number
      const changed = members.filter(id => {
        const before = this.#numbers.get(id)
        // The old group still exists elsewhere: this is a split, not an adoption.
        return before !== undefined && before !== group && !taken.has(before)
      })
      return changed.length === 0 ? [] : [{ peers: changed, group }]
    })
    for (const [id, number] of numbers) this.#numbers.set(id, number)
    this.#updates = updates
    return adoptions
  }

  #number({ members }: Group, taken: ReadonlySet<number>): number {
    const before = members
      .map(id => this.#numbers.get(id))
      .filter(number => number !== undefined)
      .filter(number => !taken.has(number))
    // A younger group has no history to compare.
    const updates = (number: number) => {
      const past = this.#updates.get(number) ?? []
      return past.length < HISTORY ? -1 : past[0]
    }
    if (before.length > 0) return before.reduce((best, number) => (updates(number) > updates(best) ? number : best))
    const used = new Set([...taken, ...this.#numbers.values()])
    let free = 0
    while (used.has(free)) free++
    return free
  }
}

/** Largest first. */
function formGroups(followers: readonly Follower[], areTogether: (a: string, b: string) => boolean): Group[] {
  const components = new Components<string>()
  const updates = new Map<string, number>()
  for (const follower of followers) {
    updates.set(follower.id, follower.updates)
    for (const digest of follower.held) components.join(follower.id, `held ${digest}`)
  }
  for (const { from, to } of edgesOf(followers)) if (areTogether(from, to)) components.join(from, to)
  return componentsOf([...updates.keys()], components)
    .map(members => ({ members, updates: Math.max(...members.map(id => updates.get(id) as number)) }))
    .sort((a, b) => b.members.length - a.members.length || b.updates - a.updates)
}
