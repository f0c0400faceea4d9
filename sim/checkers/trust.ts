/**
 * Properties that limit what hostile nodes can do: quotas, the bound of influence, jumps and signatures.
 * Signatures: what a node holds in the name of a correct node was made or contributed by it, and only makers that are hostile
 * are excluded.
 */
import {
  formatId,
  type Header,
  type Predictor,
  type PredictorId,
  type Quota,
  type Recipe,
  sameId
} from '../../src/admb/index.js'
import type { Blocks, InfluenceRule } from '../../src/learning/index.js'
import { valuesOf } from '../../src/numeric/lattice.js'
import { blocksOf } from '../../src/numeric/sums.js'
import { Violation } from '../result.js'
import type { CheckedNode, HostileNodes, Invariant, PredictorChange } from './invariant.js'

/** Gradients by the only contributor of a sum. */
type Uses = ReadonlyMap<string, number>

interface Tally {
  /** By edge, the contributors to the sum that is held, and its gradients. */
  readonly held: Map<number, { readonly origins: readonly string[]; readonly count: number }>
  readonly used: Map<string, number>
  /** The last own update, until another predictor follows it. */
  last: { readonly parent: PredictorId; readonly uses: Uses } | undefined
  /** Periods since the node has started, by its clock. */
  time: number
  switchedAt: number
}

/**
 * With a quota, the sum of a single contributor that a node holds has no more gradients than the contributor may have saved up before the
 * last change of predictor, and contributed since. What the node's own updates have used of such sums is no more than that since its start.
 */
export class Quotas implements Invariant {
  readonly #quota: Quota
  readonly #tallies = new WeakMap<CheckedNode, Tally>()

  constructor(quota: Quota) {
    this.#quota = quota
  }

  started(checked: CheckedNode): void {
    this.#tallies.set(checked, { held: new Map(), used: new Map(), last: undefined, time: 0, switchedAt: 0 })
  }

  ticked(checked: CheckedNode, elapsed: number): void {
    this.#tallyOf(checked).time += elapsed
  }

  predictorChanged(checked: CheckedNode, { cause, parent }: PredictorChange): void {
    const tally = this.#tallyOf(checked)
    if (cause === 'updated') {
      const uses = usesOf(tally, checked.origin)
      tally.last = { parent: parent.id, uses }
      for (const [origin, count] of uses) tally.used.set(origin, (tally.used.get(origin) ?? 0) + count)
    } else {
      const before = checked.node.lineage[0]?.parent
      // The batch of another node has replaced the batch of the own update.
      if (tally.last && before && sameId(tally.last.parent, before))
        for (const [origin, count] of tally.last.uses) tally.used.set(origin, (tally.used.get(origin) ?? 0) - count)
      tally.last = undefined
    }
    tally.held.clear()
    tally.switchedAt = tally.time
    for (const [origin, count] of tally.used) this.#check(checked, origin, count, tally.time, 'has used')
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const { held, time, switchedAt } = this.#tallyOf(checked)
    const sum = checked.neighbourSum(edge)
    if (sum === undefined) {
      held.delete(edge)
      return
    }
    const origins = sum.contributors.map(({ origin }) => origin)
    held.set(edge, { origins, count: sum.count })
    if (origins.length === 1) this.#check(checked, origins[0], sum.count, time - switchedAt, 'holds')
  }

  disconnected(checked: CheckedNode, edge: number): void {
    this.#tallyOf(checked).held.delete(edge)
  }

  #check({ origin: self }: CheckedNode, origin: string, count: number, periods: number, verb: string): void {
    const { perPeriod, burst } = this.#quota
    const most = burst + perPeriod * periods
    if (!(count <= most + 1e-6))
      throw new Violation(
        'quota',
        `${self} ${verb} ${count} gradients of ${origin}, which may have contributed ${most}`
      )
  }

  #tallyOf(checked: CheckedNode): Tally {
    if (!this.#tallies.has(checked)) this.started(checked)
    return this.#tallies.get(checked) as Tally
  }
}

/** What an update uses of sums with one contributor, if it uses all sums, as they have no contributor in common. */
function usesOf({ held }: Tally, self: string): Uses {
  const origins = [...held.values()].flatMap(sum => sum.origins)
  if (new Set([...origins, self]).size <= origins.length) return new Map()
  return new Map([...held.values()].flatMap(sum => (sum.origins.length === 1 ? [[sum.origins[0], sum.count]] : [])))
}

/** Rounding errors, and what a hostile node can add without being refused. */
const TOLERANCE = 2e-3

/**
 * A sum that a node holds, and a batch, have a norm of at most scale · √(contributors · inputs) in each bounded block, and not more votes
 * for a larger scale than inputs. Nodes that keep to the bound are never refused (`Acceptance`).
 */
export class BoundedInfluence implements Invariant {
  readonly #rule: InfluenceRule
  readonly #recipe: Recipe

  constructor(rule: InfluenceRule, recipe: Recipe) {
    this.#rule = rule
    this.#recipe = recipe
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const held = checked.neighbourSum(edge)
    if (held === undefined) return
    const what = `the sum that ${checked.origin} holds from ${checked.edges.get(edge)?.peer}`
    this.#check(what, checked.node.predictor, held.sum, held.count, held.contributors.length)
  }

  predictorChanged(_checked: CheckedNode, change: PredictorChange): void {
    if (change.cause !== 'updated') return
    const { parent, header, batch } = change
    const contributors = header.coverage.size
    this.#check(`the batch of ${formatId(header.id)}`, parent, blocksOf(batch.sum), batch.count, contributors)
  }

  #check(what: string, at: Predictor, sum: Blocks, count: number, contributors: number): void {
    const grid = this.#recipe.rule.grid?.(at, at.id.updates)
    const values = grid ? valuesOf(sum as Float32Array[], grid) : sum
    const most = Math.sqrt(contributors * count) * (1 + TOLERANCE)
    for (const [b, scale] of this.#rule.of(at.parameters).entries()) {
      const votes = values[this.#rule.index][b]
      if (!(votes <= count * (1 + TOLERANCE)))
        throw new Violation('influence', `${what} has ${votes} votes of ${count}`)
      const norm = Math.hypot(...values[b])
      if (scale > 0 && !(norm <= scale * most))
        throw new Violation('influence', `${what} has a norm of ${norm}, the bound is ${scale * most}`)
    }
  }
}

/**
 * Counts the correct nodes that have made an update of its lineage, or have held it, and all peer ids of hostile ones, which may claim so. Neither
 * count depends on the vouchers that nodes exchange.
 */
export class Jumps implements Invariant {
  readonly #needed: number
  readonly #hostile: HostileNodes
  /** Predictors that each correct node has held, with their ancestors, by its origin. */
  readonly #held = new Map<string, Set<string>>()
  /** Correct nodes that have held a predictor. */
  readonly #holders = new Map<string, Set<string>>()

  /** @param needed number of nodes that must answer for a predictor */
  constructor(needed: number, hostile: HostileNodes) {
    this.#needed = needed
    this.#hostile = hostile
  }

  started(checked: CheckedNode): void {
    this.#record(checked, checked.node.predictor.id, [])
  }

  predictorChanged(checked: CheckedNode, { cause, parent: before, predictor: { id } }: PredictorChange): void {
    const { lineage, inspect } = checked.node
    const index = lineage.findIndex(header => keyOf(header.id) === keyOf(id))
    const headers = index < 0 ? [] : lineage.slice(index)
    // Steps are replayed, so their result follows from what the node held. A predictor that waited may have followed in the same
    // event; then nothing shows how this one was adopted.
    const isWhole = cause === 'adopted' && (index < 0 || (index === 0 && inspect.chain.steps === 0))
    if (isWhole) this.#check(checked, before.id, id, headers)
    this.#record(checked, id, headers)
  }

  #check({ origin }: CheckedNode, before: PredictorId, id: PredictorId, headers: readonly Header[]): void {
    const held = this.#held.get(origin)
    if (before.updates > 0 && headers.some(({ parent }) => held?.has(keyOf(parent)))) return
    const correct = new Set(this.#holders.get(keyOf(id)))
    for (const header of headers) if (this.#held.has(header.id.origin)) correct.add(header.id.origin)
    if (correct.size + this.#hostile.identities >= this.#needed) return
    const what = `${origin} went from ${formatId(before)} to ${formatId(id)}`
    throw new Violation('jumps', `${what}, for which ${correct.size} correct nodes answer; ${this.#needed} are needed`)
  }

  #record({ origin }: CheckedNode, id: PredictorId, headers: readonly Header[]): void {
    const held = this.#held.get(origin) ?? new Set()
    this.#held.set(origin, held)
    for (const one of [id, ...headers.flatMap(header => [header.id, header.parent])]) {
      const key = keyOf(one)
      if (held.has(key)) continue
      held.add(key)
      this.#holders.set(key, (this.#holders.get(key) ?? new Set()).add(origin))
    }
  }
}

function keyOf(id: PredictorId): string {
  return `${formatId(id)} ${id.digest}`
}

/** No node adopts an update in the name of a correct node that has not made it, regardless of the sender. Predictors without headers do not count. */
export class Authentic implements Invariant {
  /** Names of all correct nodes so far. */
  readonly #origins = new Set<string>()
  readonly #made = new Set<string>()

  started({ origin }: CheckedNode): void {
    this.#origins.add(origin)
  }

  predictorChanged({ origin, node }: CheckedNode, { cause, predictor: { id } }: PredictorChange): void {
    const key = `${formatId(id)} ${id.digest}`
    if (cause === 'updated') this.#made.add(key)
    else if (this.#origins.has(id.origin) && node.lineage.length > 0 && !this.#made.has(key))
      throw new Violation('authentic', `${origin} ${cause} ${formatId(id)}, which ${id.origin} has not made`)
  }
}

/**
 * The sums that a node holds contain gradients of at most one run of each node, and of no run of a correct node that has not begun. If
 * nodes know the members of the network, there are no other contributors.
 */
export class Contributors implements Invariant {
  readonly #hostile: HostileNodes
  readonly #hasMembers: boolean
  /** Runs of correct nodes so far, by origin. */
  readonly #runs = new Map<string, Set<string>>()

  /** @param hasMembers whether nodes know the members */
  constructor(hostile: HostileNodes, hasMembers: boolean) {
    this.#hostile = hostile
    this.#hasMembers = hasMembers
  }

  started({ origin, incarnation, nonce }: CheckedNode): void {
    this.#runs.set(origin, (this.#runs.get(origin) ?? new Set()).add(`${incarnation} ${nonce}`))
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const contributors = checked.neighbourSum(edge)?.contributors ?? []
    const what = `the sum that ${checked.origin} holds from ${checked.edges.get(edge)?.peer}`
    const origins = new Set<string>()
    for (const { origin, incarnation, nonce } of contributors) {
      if (origins.has(origin)) throw new Violation('contributors', `${what} has two runs of ${origin}`)
      origins.add(origin)
      const runs = this.#runs.get(origin)
      if (runs === undefined && this.#hasMembers && !this.#hostile.hasIdentity(origin))
        throw new Violation('contributors', `${what} has gradients of ${origin}, which is no node`)
      if (runs?.has(`${incarnation} ${nonce}`) === false)
        throw new Violation('contributors', `${what} has gradients of run ${incarnation} ${nonce} of ${origin}`)
    }
  }
}

/** No correct node is ever excluded for having signed different headers with one name. */
export class Attribution implements Invariant {
  readonly #origins = new Set<string>()

  started({ origin }: CheckedNode): void {
    this.#origins.add(origin)
  }

  makerExcluded({ origin }: CheckedNode, maker: string): void {
    if (this.#origins.has(maker))
      throw new Violation('attribution', `${origin} has excluded ${maker}, which is correct`)
  }
}
