/**
 * Stands between a run and its nodes: hands every event on to the node, and then tells the invariants. The run goes on as it
 * would without.
 */
import type { AdmbOptions, Effect, Predictor } from '../../src/admb/index.js'
import type { LearningNode, NodeFactory } from '../learning-node.js'
import type { EdgeSite, Invariant, Occurrence, Site, Turn } from './invariant.js'
import type { Violation } from './violation.js'

export class Watch {
  readonly #invariants: readonly Invariant[]
  readonly #sites = new Map<number, WatchedNode>()

  constructor(invariants: readonly Invariant[]) {
    this.#invariants = invariants
  }

  /** A node that tells of its events. A node of the same index before it is forgotten. */
  create(index: number, options: AdmbOptions, factory: NodeFactory): LearningNode {
    const site = new WatchedNode(index, options, factory(options, index), this.#invariants)
    this.#sites.set(index, site)
    for (const invariant of this.#invariants) invariant.began?.(site)
    return site
  }

  /** What has not settled yet, of the nodes that are up. */
  unsettled(isUp: (index: number) => boolean): Violation | undefined {
    const sites = [...this.#sites.values()].filter(({ index }) => isUp(index))
    for (const invariant of this.#invariants) {
      const violation = invariant.unsettled?.(sites)
      if (violation) return violation
    }
    return undefined
  }
}

class WatchedNode implements LearningNode, Site {
  readonly index: number
  readonly origin: string
  readonly incarnation: number
  readonly node: LearningNode
  readonly edges = new Map<number, EdgeSite>()
  readonly before: { predictor: Predictor; own: number }
  period = 0
  readonly #invariants: readonly Invariant[]
  #effects: Effect[] = []
  /** What `held` said during this event. */
  #heldEdge = -1
  #held: ReturnType<LearningNode['neighbourSum']>

  constructor(index: number, options: AdmbOptions, node: LearningNode, invariants: readonly Invariant[]) {
    this.index = index
    this.origin = options.self
    this.incarnation = options.incarnation
    this.node = node
    this.before = { predictor: node.predictor, own: node.ownGradients }
    this.#invariants = invariants
  }

  get predictor(): Predictor {
    return this.node.predictor
  }

  get gradients(): number {
    return this.node.gradients
  }

  get ownGradients(): number {
    return this.node.ownGradients
  }

  get discarded(): number {
    return this.node.discarded
  }

  get lineage(): LearningNode['lineage'] {
    return this.node.lineage
  }

  get accumulator(): LearningNode['accumulator'] {
    return this.node.accumulator
  }

  neighbourSum(edge: number): ReturnType<LearningNode['neighbourSum']> {
    if (this.#heldEdge !== edge) {
      this.#held = this.node.neighbourSum(edge)
      this.#heldEdge = edge
    }
    return this.#held
  }

  added(count: number): void {
    this.node.added(count)
    for (const invariant of this.#invariants) invariant.learned?.(this, count)
    this.#flush('learned', count)
  }

  tick(): void {
    this.node.tick()
    this.period++
    for (const invariant of this.#invariants) invariant.ticked?.(this)
    this.#flush('ticked')
  }

  connect(edge: number, session: number, peer: string): void {
    if (this.edges.has(edge)) this.disconnect(edge)
    this.node.connect(edge, session, peer)
    this.edges.set(edge, { session, peer })
    for (const invariant of this.#invariants) invariant.linked?.(this, edge)
    this.#flush('linked')
  }

  disconnect(edge: number): void {
    this.node.disconnect(edge)
    if (!this.edges.delete(edge)) return
    for (const invariant of this.#invariants) invariant.unlinked?.(this, edge)
    this.#flush('unlinked')
  }

  receive(edge: number, frame: Uint8Array): void {
    this.node.receive(edge, frame)
    this.#collect()
    for (const invariant of this.#invariants) invariant.heard?.(this, edge, frame)
    this.#flush('heard')
  }

  frame(edge: number): Uint8Array | undefined {
    return this.node.frame(edge)
  }

  takeEffects(): Effect[] {
    const effects = this.#effects
    if (effects.length > 0) this.#effects = []
    return effects
  }

  save(saved?: Parameters<LearningNode['save']>[0]): Uint8Array {
    return this.node.save(saved)
  }

  snapshot(): ReturnType<LearningNode['snapshot']> {
    return this.node.snapshot()
  }

  restore(bytes: Uint8Array): void {
    this.node.restore(bytes)
    const { predictor } = this.node
    if (predictor !== this.before.predictor) this.#turn({ how: 'restored', parent: this.before.predictor, predictor })
    this.before.own = this.node.ownGradients
  }

  #flush(what: Occurrence, count = 0): void {
    this.#collect()
    for (const invariant of this.#invariants) invariant.after?.(this, what, count)
    this.before.predictor = this.node.predictor
    this.before.own = this.node.ownGradients
    this.#heldEdge = -1
  }

  #collect(): void {
    let parent = this.before.predictor
    for (const effect of this.node.takeEffects()) {
      this.#effects.push(effect)
      if (effect.kind === 'refused') {
        for (const invariant of this.#invariants) invariant.refused?.(this, effect.edge, effect.reason)
        continue
      }
      const { predictor } = effect
      const { kind: how } = effect
      if (how === 'adopted') this.#turn({ how, parent, predictor })
      else this.#turn({ how, parent, predictor, header: effect.header, batch: effect.batch })
      parent = predictor
    }
  }

  #turn(turn: Turn): void {
    for (const invariant of this.#invariants) invariant.turned?.(this, turn)
    if (turn.how === 'restored') this.before.predictor = turn.predictor
  }
}
