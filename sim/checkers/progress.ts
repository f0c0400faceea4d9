/** Properties of progress: 8 (quiescence), 9 (progress), 12 (flush), `remainder`, 14 (waiting) and `prompt`. */
import {
  compareIds,
  formatId,
  hasSum,
  isAnnouncement,
  isFragment,
  MAX_PACE,
  type MasterAlgorithm,
  PUSH_PERIODS,
  sameId,
  WAIT_PERIODS
} from '../../src/admb/index.js'
import { repairTime, spreadTime } from '../regret/periods.js'
import { Violation } from '../result.js'
import { endOf } from '../scenario.js'
import type { CheckedNode, CheckedRun, Invariant, PredictorChange } from './invariant.js'

/**
 * Property 9 (progress): Lemma 1 and Theorem 2 of Dekel et al., "Robust Distributed Online Prediction", for the running nodes while
 * they are linked, where delays are constant, predictors are sent without a request, and inputs arrive. With the times of
 * `regret/periods.ts`, for faults that end at time f (f + repair = 0 without faults):
 *
 * - Lemma 1: if a node has v updates at time s, all have by max(s, f + repair) + spread.
 * - Theorem 2: if all have v updates, all have v + 1 after b + 2·(T + 2·delay)·d·M further inputs, not counting those before f + repair +
 *   spread. For by then all have as many updates as the best, and the proof begins there.
 *
 * What the paper's good set cannot meet is in the repair: sessions that began, and messages that were lost, while an edge was cut.
 * Carry-over only adds gradients to a batch. Inputs that are learned again do not count.
 */
export class Progress implements Invariant {
  readonly #run: CheckedRun
  readonly #repair: number
  readonly #spread: number
  /** Inputs until all nodes have the next update. */
  readonly #inputs: number
  /** Inputs of all nodes per virtual ms. */
  readonly #rate: number
  /** Number of updates of each node. */
  readonly #updates: number[] = []
  #served = 0
  /** Number of the last input, if there is a journal. */
  #newest = -1
  /** Time of the last fault for which the fields below have been set. */
  #since: number | undefined
  /** From when on the network is like one without faults. */
  #from = 0
  /** Number of running nodes by number of updates. */
  #counts: number[] = []
  /** When a node had each number of updates, `#from` at the earliest. */
  #reached: number[] = []
  /** Minimum number of updates of the running nodes. */
  #min = 0
  /** Number of inputs by which it must have grown. */
  #limit = 0

  /** @param delay one-way delay of all messages in ms */
  constructor(run: CheckedRun, delay: number) {
    const { batch, autoPeriod, interval, nodes } = run.scenario
    const period = autoPeriod ? MAX_PACE * run.scenario.period : run.scenario.period
    const { diameter } = run.topology
    this.#run = run
    this.#spread = spreadTime(diameter, delay)
    this.#repair = repairTime(run.scenario.period, delay)
    this.#rate = nodes / interval
    // All nodes may receive inputs at the same instant, at both ends of the interval.
    this.#inputs = (run.adaptiveBatch?.max ?? batch) + 2 * (period + 2 * delay) * diameter * this.#rate + 2 * nodes
  }

  started({ index, node }: CheckedNode): void {
    this.#updates[index] = node.predictor.id.updates
  }

  learned(_node: CheckedNode, count: number, first = this.#newest + 1): void {
    const isCalm = this.#isCalm()
    // Inputs that are learned again do not count.
    if (first <= this.#newest) return
    this.#newest = first
    this.#served += count
    if (isCalm) this.#check()
  }

  predictorChanged({ index }: CheckedNode, { predictor }: PredictorChange): void {
    const { now } = this.#run
    const isCalm = this.#isCalm()
    if (isCalm) this.#check()
    const before = this.#updates[index]
    const { updates } = predictor.id
    this.#updates[index] = updates
    if (!isCalm) return
    this.#counts[before]--
    this.#counts[updates] = (this.#counts[updates] ?? 0) + 1
    for (let v = before + 1; v <= updates; v++) this.#reached[v] ??= Math.max(now, this.#from)
    while (!this.#counts[this.#min]) this.#min++
    this.#extend()
  }

  /** Whether the running nodes are linked, and time has passed since the last fault. */
  #isCalm(): boolean {
    const { linkedSince, now, scenario, faults } = this.#run
    // What was lost may be missing for longer without inputs.
    const hasInputs = this.#served < scenario.inputs && (scenario.duration === undefined || now <= endOf(scenario))
    const isOver = !hasInputs && faults.length > 0
    if (linkedSince === undefined || now <= linkedSince || isOver) {
      this.#since = undefined
      return false
    }
    if (linkedSince !== this.#since) this.#begin(linkedSince)
    return true
  }

  #begin(since: number): void {
    this.#since = since
    this.#from = Math.max(0, since + this.#repair)
    this.#counts = []
    const running = this.#updates.filter((_, index) => this.#run.isUp(index))
    for (const updates of running) this.#counts[updates] = (this.#counts[updates] ?? 0) + 1
    this.#min = Math.min(...running)
    this.#reached = new Array(Math.max(...running) + 1).fill(this.#from)
    this.#extend()
  }

  #extend(): void {
    const left = Math.max(0, this.#from + this.#spread - this.#run.now)
    this.#limit = this.#served + this.#inputs + (this.#from > 0 ? left * this.#rate : 0)
  }

  #check(): void {
    const { now } = this.#run
    const wanted = this.#min + 1
    const waited = now - this.#reached[wanted]
    if (waited > this.#spread * (1 + 1e-9)) {
      const bound = `${this.#spread.toPrecision(4)} ms (Lemma 1)`
      throw new Violation(
        'progress',
        `not all nodes have ${wanted} updates ${waited.toPrecision(4)} ms after the first, above ${bound}`
      )
    }
    if (this.#served > this.#limit)
      throw new Violation(
        'progress',
        `not all nodes have ${wanted} updates after ${this.#served} inputs, above ${Math.floor(this.#limit)} (Theorem 2)`
      )
  }
}

/**
 * Property "prompt", in runs without faults and with a constant delay: own gradients do not wait forever. A neighbour that holds the
 * node's predictor receives a sum with them within `MAX_PACE` periods, and a round trip for the acknowledgement of earlier sums,
 * unless the node holds sums back.
 */
interface Sent {
  /** Since when a sum could be sent, or the last one has left. */
  period: number
  /** Own gradients in it. */
  own: number
}

export class Prompt implements Invariant {
  readonly #most: number
  readonly #sent = new WeakMap<CheckedNode, Map<number, Sent>>()

  /** @param roundTrip in periods */
  constructor(roundTrip: number) {
    this.#most = MAX_PACE + Math.ceil(roundTrip) + 2
  }

  started(checked: CheckedNode): void {
    this.#sent.set(checked, new Map())
  }

  connected(checked: CheckedNode, edge: number): void {
    this.#sent.get(checked)?.set(edge, { period: checked.period, own: 0 })
  }

  disconnected(checked: CheckedNode, edge: number): void {
    this.#sent.get(checked)?.delete(edge)
  }

  predictorChanged(checked: CheckedNode): void {
    for (const sent of this.#sent.get(checked)?.values() ?? []) {
      sent.period = checked.period
      sent.own = 0
    }
  }

  frameSent(checked: CheckedNode, edge: number, frame: Uint8Array): void {
    if (isAnnouncement(frame) || isFragment(frame) || !hasSum(frame)) return
    this.#sent.get(checked)?.set(edge, { period: checked.period, own: checked.node.ownGradients })
  }

  /** What became due is sent after the tick, so that the next tick checks it. */
  ticked(checked: CheckedNode): void {
    const { node, origin, period } = checked
    for (const [edge, sent] of this.#sent.get(checked) ?? []) {
      const held = node.inspect.neighbourPredictor(edge)
      if (node.holdsSums || held === undefined || !sameId(held, node.predictor.id)) sent.period = period
      const waiting = period - sent.period
      if (node.ownGradients > sent.own && waiting > this.#most)
        throw new Violation('prompt', `${origin} has held back own gradients from a neighbour for ${waiting} periods`)
    }
  }
}

/**
 * Property 14 (waiting): a node waits only for a better predictor that exists, and that a neighbour of an open session has announced
 * or repeated within `WAIT_PERIODS`. It holds sums back only while it waits, or while a neighbour lacks its predictor, to which it has
 * sent a frame within `PUSH_PERIODS`.
 */
export class Waiting implements Invariant {
  readonly #computed = new Set<string>()
  /** The period of each node in which the last announcement came over an edge. */
  readonly #heard = new WeakMap<CheckedNode, Map<number, number>>()

  /** The period of each node in which the last frame left over an edge. */
  readonly #sent = new WeakMap<CheckedNode, Map<number, number>>()

  started(node: CheckedNode): void {
    this.#heard.set(node, new Map())
    this.#sent.set(node, new Map())
  }

  predictorChanged(_node: CheckedNode, { cause, predictor }: PredictorChange): void {
    if (cause === 'updated') this.#computed.add(formatId(predictor.id))
  }

  frameReceived(node: CheckedNode, edge: number, frame: Uint8Array): void {
    if (isAnnouncement(frame)) this.#heard.get(node)?.set(edge, node.period)
  }

  frameSent(node: CheckedNode, edge: number): void {
    this.#sent.get(node)?.set(edge, node.period)
  }

  disconnected(node: CheckedNode, edge: number): void {
    this.#heard.get(node)?.delete(edge)
    this.#sent.get(node)?.delete(edge)
  }

  afterEvent(checked: CheckedNode): void {
    const { node, origin, period } = checked
    const { expected } = node
    if (expected === undefined) {
      if (node.holdsSums) this.#checkSent(checked)
      return
    }
    const key = formatId(expected)
    if (compareIds(expected, node.predictor.id) <= 0)
      throw new Violation('waiting', `${origin} waits for ${key}, which is not better than its predictor`)
    if (!this.#computed.has(key))
      throw new Violation('waiting', `${origin} waits for ${key}, which no node has computed`)
    const heard = Math.max(Number.NEGATIVE_INFINITY, ...(this.#heard.get(checked)?.values() ?? []))
    if (period - heard > WAIT_PERIODS)
      throw new Violation('waiting', `${origin} waits for ${key}, which was announced ${period - heard} periods ago`)
  }

  #checkSent(checked: CheckedNode): void {
    const { node, origin, period } = checked
    for (const [edge, sent] of this.#sent.get(checked) ?? []) {
      const held = node.inspect.neighbourPredictor(edge)
      const lacksIt = held === undefined || !sameId(held, node.predictor.id)
      if (lacksIt && period - sent <= PUSH_PERIODS) return
    }
    throw new Violation('waiting', `${origin} holds sums back, although no predictor is on its way to a neighbour`)
  }
}

/**
 * Properties 8 (quiescence), 12 (flush) and `remainder`: after the end of inputs and faults, all nodes of a tree hold its best predictor, and
 * every node's sum contains all live gradients and no gradients left over from former links. When
 * the nodes have used what was left, no gradient is outside an update.
 */
export class Quiescence implements Invariant {
  readonly #hasQuotas: boolean
  readonly #algorithm: MasterAlgorithm | undefined

  /**
   * @param hasQuotas whether fewer than b gradients make no update
   * @param algorithm if only the master updates, which then has all live gradients; with DMB when all have their shares
   */
  constructor(hasQuotas: boolean, algorithm: MasterAlgorithm | undefined) {
    this.#hasQuotas = hasQuotas
    this.#algorithm = algorithm
  }

  checkEnd(nodes: readonly CheckedNode[]): Violation | undefined {
    if (this.#hasQuotas) return undefined
    const isServed = (tree: CheckedNode[]) =>
      this.#algorithm === undefined || tree.some(({ master }) => master === 'self')
    const holder = componentsOf(nodes)
      .filter(isServed)
      .flat()
      .find(({ node }) => node.gradients > 0)
    return (
      holder && new Violation('remainder', `${holder.origin} holds ${holder.node.gradients} gradients in no update`)
    )
  }

  checkQuiescence(nodes: readonly CheckedNode[]): Violation | undefined {
    for (const tree of componentsOf(nodes)) {
      const best = tree.map(({ node }) => node.predictor.id).reduce((a, b) => (compareIds(a, b) >= 0 ? a : b))
      const live = tree.reduce((sum, { node }) => sum + node.ownGradients, 0)
      for (const { origin, node, master } of tree) {
        const { id } = node.predictor
        if (compareIds(id, best) !== 0)
          return new Violation('quiescence', `${origin} holds ${formatId(id)} while the best is ${formatId(best)}`)
        if (this.#algorithm === 'dmb' || (this.#algorithm && master !== 'self')) continue
        if (node.gradients < live)
          return new Violation('quiescence', `${origin} holds ${node.gradients} of ${live} live gradients`)
        if (!(node.gradients <= live))
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
