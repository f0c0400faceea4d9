/**
 * What a property is made of: it is told of every event of every node, right after it happened, and throws a Violation. It
 * looks only at what the event touched, so that checking costs no more than running.
 */
import type { Batch, Header, Predictor, Recipe } from '../../src/admb/index.js'
import type { Fault } from '../faults/schedule.js'
import type { LearningNode } from '../learning-node.js'
import type { Scenario } from '../scenario.js'
import type { Topology } from '../topology.js'
import type { Violation } from './violation.js'

/** One node in one incarnation. */
export interface Site {
  readonly index: number
  readonly origin: string
  readonly incarnation: number
  readonly node: LearningNode
  /** Periods since this incarnation began. */
  readonly period: number
  /** Peers' indices among the nodes, by edge, for every session that this end holds. */
  readonly edges: ReadonlyMap<number, EdgeSite>
  /** Predictor and own gradients as they were before the event. */
  readonly before: { readonly predictor: Predictor; readonly own: number }
  /** The sum held from a neighbour, as `AdmbNode.held`; asked for once an event. */
  neighbourSum(edge: number): ReturnType<LearningNode['neighbourSum']>
}

export interface EdgeSite {
  readonly session: number
  readonly peer: string
}

/** A node's change to another predictor. `restored`: what its disk had, before its first event. */
export type Turn =
  | { readonly how: 'restored' | 'adopted'; readonly parent: Predictor; readonly predictor: Predictor }
  | {
      readonly how: 'updated'
      readonly parent: Predictor
      readonly predictor: Predictor
      readonly header: Header
      readonly batch: Batch
    }

/** What an event was. */
export type Occurrence = 'learned' | 'ticked' | 'heard' | 'linked' | 'unlinked'

export interface Invariant {
  /** A node begins, or begins again in a new incarnation; `restored` may follow. */
  began?(site: Site): void
  turned?(site: Site, turn: Turn): void
  /** `count` own gradients were added. */
  learned?(site: Site, count: number): void
  ticked?(site: Site): void
  linked?(site: Site, edge: number): void
  unlinked?(site: Site, edge: number): void
  heard?(site: Site, edge: number, frame: Uint8Array): void
  refused?(site: Site, edge: number, reason: string): void
  /** After all of the above, once an event. @param count own gradients that the event added */
  after?(site: Site, what: Occurrence, count: number): void
  /**
   * Faults are over, no input comes any more: what is not yet as it must come to be.
   * @param sites those that are up
   */
  unsettled?(sites: readonly Site[]): Violation | undefined
}

/** What invariants may know of the run that they watch. */
export interface WatchedRun {
  readonly scenario: Scenario
  readonly faults: readonly Fault[]
  readonly topology: Topology
  readonly recipe: Recipe
  /** The predictor that every node starts from. */
  readonly start: Predictor
  /** Virtual milliseconds. */
  readonly now: number
}

/** Makes the invariants of one run, which keep what they need to remember of it. */
export type Invariants = (run: WatchedRun) => readonly Invariant[]
