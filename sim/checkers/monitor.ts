/** Wraps the nodes of a run: forwards every event to the node and then calls the invariants. It does not change the run. */
import { AdmbNode, type AdmbOptions, type Effect, type MasterEdge, type Predictor } from '../../src/admb/index.js'
import type { Violation } from '../result.js'
import type { LearningNode, NodeFactory } from '../world.js'
import type { CheckedEdge, CheckedNode, Invariant, NodeEvent, PredictorChange } from './invariant.js'

export class InvariantMonitor {
  readonly #invariants: readonly Invariant[]
  readonly #nodes = new Map<number, MonitoredNode>()

  constructor(invariants: readonly Invariant[]) {
    this.#invariants = invariants
  }

  /** Creates a monitored node, which replaces the previous node of that index. */
  create(index: number, options: AdmbOptions, factory: NodeFactory): LearningNode {
    const node = new MonitoredNode(index, options, factory(options, index), this.#invariants)
    this.#nodes.set(index, node)
    for (const invariant of this.#invariants) invariant.started?.(node)
    return node
  }

  /** An input was predicted with the predictor that has `updates` updates. */
  served(updates: number): void {
    for (const invariant of this.#invariants) invariant.served?.(updates)
  }

  /** The predictor that has `updates` updates was updated with `count` gradients. */
  updated(updates: number, count: number): void {
    for (const invariant of this.#invariants) invariant.updated?.(updates, count)
  }

  /** The first property that does not hold yet for the nodes that are up. */
  checkQuiescence(isUp: (index: number) => boolean): Violation | undefined {
    const nodes = this.#upNodes(isUp)
    return firstOf(this.#invariants, invariant => invariant.checkQuiescence?.(nodes))
  }

  /** The first property that does not hold yet after the nodes that are up have used what was left. */
  checkEnd(isUp: (index: number) => boolean): Violation | undefined {
    const nodes = this.#upNodes(isUp)
    return firstOf(this.#invariants, invariant => invariant.checkEnd?.(nodes))
  }

  #upNodes(isUp: (index: number) => boolean): readonly CheckedNode[] {
    return [...this.#nodes.values()].filter(({ index }) => isUp(index))
  }
}

function firstOf(
  invariants: readonly Invariant[],
  check: (invariant: Invariant) => Violation | undefined
): Violation | undefined {
  for (const invariant of invariants) {
    const violation = check(invariant)
    if (violation) return violation
  }
  return undefined
}

/** What the monitor does before or after the node. */
type Event =
  | ('added' | 'tick' | 'useRemainder' | 'connect' | 'disconnect' | 'taken' | 'setMaster' | 'end')
  | ('receive' | 'frame' | 'takeEffects' | 'restore' | 'downloadEnded')

/** All other properties and methods are those of the node. */
const Forwarding = forwardingClass()

function forwardingClass() {
  class Forwarding {
    constructor(readonly node: LearningNode) {}
  }
  const keys = ['shapes', 'storage', 'inspect', ...Object.getOwnPropertyNames(AdmbNode.prototype)]
  for (const key of keys.filter(key => key !== 'constructor') as (keyof LearningNode)[]) {
    const get = function (this: Forwarding) {
      const value = this.node[key]
      return typeof value === 'function' ? value.bind(this.node) : value
    }
    Object.defineProperty(Forwarding.prototype, key, { get })
  }
  return Forwarding as new (
    node: LearningNode
  ) => Forwarding & Omit<LearningNode, Event>
}

class MonitoredNode extends Forwarding implements LearningNode, CheckedNode {
  readonly index: number
  readonly origin: string
  readonly incarnation: number
  readonly nonce: number
  readonly edges = new Map<number, CheckedEdge>()
  readonly before: { predictor: Predictor; own: number }
  period = 0
  usesRemainder = false
  master: MasterEdge
  #hasEnded = false
  readonly #invariants: readonly Invariant[]
  #effects: Effect[] = []
  /** Cached result of `neighbourSum` for this event, and its edge. */
  #cachedEdge = -1
  #cachedSum: ReturnType<LearningNode['inspect']['neighbourSum']>

  constructor(index: number, options: AdmbOptions, node: LearningNode, invariants: readonly Invariant[]) {
    super(node)
    this.index = index
    this.origin = options.self
    this.incarnation = options.incarnation
    this.nonce = options.nonce ?? 0
    this.before = { predictor: node.predictor, own: node.ownGradients }
    this.#invariants = invariants
  }

  neighbourSum(edge: number): ReturnType<LearningNode['inspect']['neighbourSum']> {
    if (this.#cachedEdge !== edge) {
      this.#cachedSum = this.node.inspect.neighbourSum(edge)
      this.#cachedEdge = edge
    }
    return this.#cachedSum
  }

  added(...[count, first, mark]: Parameters<LearningNode['added']>): void {
    const { onlyProgress, relearnable } = this.node
    const counted = onlyProgress && first === relearnable?.[0] ? 0 : count
    this.node.added(count, first, mark)
    for (const invariant of this.#invariants) invariant.learned?.(this, counted, first)
    this.#finishEvent('learned', counted)
  }

  tick(elapsed = 1): void {
    this.node.tick(elapsed)
    this.period++
    for (const invariant of this.#invariants) invariant.ticked?.(this, elapsed)
    this.#finishEvent('ticked')
  }

  useRemainder(): void {
    this.usesRemainder = true
    this.node.useRemainder()
    this.#finishEvent('finished')
    this.usesRemainder = false
  }

  connect(edge: number, session: number, peer: string): void {
    if (this.edges.has(edge)) this.disconnect(edge)
    this.node.connect(edge, session, peer)
    this.edges.set(edge, { session, peer })
    for (const invariant of this.#invariants) invariant.connected?.(this, edge)
    this.#finishEvent('connected')
  }

  setMaster(edge: MasterEdge): void {
    this.master = edge
    this.node.setMaster(edge)
    this.#finishEvent('moved')
  }

  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    for (const invariant of this.#invariants) invariant.ended?.(this)
    this.node.end()
    this.#finishEvent('ended')
  }

  disconnect(edge: number, hasLeft = false): void {
    const peer = hasLeft ? this.edges.get(edge)?.peer : undefined
    if (peer !== undefined) for (const invariant of this.#invariants) invariant.ended?.(this, peer)
    this.node.disconnect(edge, hasLeft)
    if (!this.edges.delete(edge)) return
    for (const invariant of this.#invariants) invariant.disconnected?.(this, edge)
    this.#finishEvent('disconnected')
  }

  taken(edge: number, sequence: number): void {
    this.node.taken(edge, sequence)
    for (const invariant of this.#invariants) invariant.framesTaken?.(this, edge, sequence)
  }

  receive(edge: number, frame: Uint8Array): void {
    this.node.receive(edge, frame)
    this.#collectEffects()
    for (const invariant of this.#invariants) invariant.frameReceived?.(this, edge, frame)
    this.#finishEvent('received')
  }

  downloadEnded(...[stored, from]: Parameters<LearningNode['downloadEnded']>): void {
    this.node.downloadEnded(stored, from)
    this.#finishEvent('downloaded')
  }

  frame(edge: number): Uint8Array | undefined {
    const frame = this.node.frame(edge)
    if (frame) for (const invariant of this.#invariants) invariant.frameSent?.(this, edge, frame)
    return frame
  }

  takeEffects(): Effect[] {
    const effects = this.#effects
    if (effects.length > 0) this.#effects = []
    return effects
  }

  restore(bytes: Uint8Array): void {
    this.node.restore(bytes)
    const { predictor } = this.node
    if (predictor !== this.before.predictor)
      this.#notifyChange({ cause: 'restored', parent: this.before.predictor, predictor })
    this.before.own = this.node.ownGradients
  }

  #finishEvent(event: NodeEvent, count = 0): void {
    this.#collectEffects()
    for (const invariant of this.#invariants) invariant.afterEvent?.(this, event, count)
    this.before.predictor = this.node.predictor
    this.before.own = this.node.ownGradients
    this.#cachedEdge = -1
  }

  #collectEffects(): void {
    let parent = this.before.predictor
    for (const effect of this.node.takeEffects()) {
      this.#effects.push(effect)
      for (const invariant of this.#invariants) {
        if (effect.kind === 'refused') invariant.frameRefused?.(this, effect.edge, effect.reason)
        else if (effect.kind === 'announced') invariant.announced?.(this, effect.edge, effect.bytes)
        else if (effect.kind === 'rejected') invariant.predictorRejected?.(this, effect.predictor)
        else if (effect.kind === 'excluded') invariant.makerExcluded?.(this, effect.maker)
      }
      if (effect.kind !== 'adopted' && effect.kind !== 'updated') continue
      const { predictor, kind: cause } = effect
      if (cause === 'adopted') this.#notifyChange({ cause, parent, predictor })
      else this.#notifyChange({ cause, parent, predictor, header: effect.header, batch: effect.batch })
      parent = predictor
    }
  }

  #notifyChange(change: PredictorChange): void {
    for (const invariant of this.#invariants) invariant.predictorChanged?.(this, change)
    if (change.cause === 'restored') this.before.predictor = change.predictor
  }
}
