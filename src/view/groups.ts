/**
 * Which peers follow one predictor: those that have held one in common within the last seconds, directly or through others; and
 * neighbours that did so before, since what one has the other has in a moment.
 * A group has a number, which the page makes a colour of; so numbers stay with the peers that had them: when a group falls
 * apart the larger part keeps its number, and when two become one it has the number of the one with more updates, whose
 * predictor the others take over. What counts is what the two had a while before: when the two are found to be one, the losers
 * may have told of the winners' updates already.
 */
import { Components, componentsOf, edgesOf } from './components.js'

/** So many calls before a merger, twice a second, the two groups were surely still two. */
const HISTORY = 6

export interface Follower {
  readonly id: string
  readonly updates: number
  /** Short digests of the predictors that it held lately. */
  readonly held: Iterable<string>
  /** Followers at the other ends of its tree edges. */
  readonly neighbours: readonly string[]
}

/** Peers that gave their group's predictor up for another's. */
export interface Adoption {
  readonly peers: readonly string[]
  /** The group that they belong to now. */
  readonly group: number
}

interface Group {
  readonly members: readonly string[]
  readonly updates: number
}

export class Groups {
  readonly #numbers = new Map<string, number>()
  /** Most updates in each group the last times, oldest first. */
  #updates = new Map<number, readonly number[]>()

  /** The number of the group that a peer belongs to, or did when it was last among the followers. */
  of(id: string): number | undefined {
    return this.#numbers.get(id)
  }

  forget(id: string): void {
    this.#numbers.delete(id)
  }

  /** Groups the peers anew; others keep the numbers that they had. */
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
        // A number that goes on elsewhere was not given up.
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
    // A group that is younger than that has had no predictor to give to others.
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
