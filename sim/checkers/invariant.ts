/**
 * The interface of an invariant: callbacks for every event of every node, called right after the event, that throw a Violation.
 * An invariant checks only the state that the event affects, so that checking costs no more than running.
 */
import type { Batch, Header, MasterEdge, Predictor } from '../../src/admb/index.js'
import type { Fault } from '../faults/schedule.js'
import type { Violation } from '../result.js'
import type { Scenario } from '../scenario.js'
import type { Topology } from '../topology.js'
import type { Learning, LearningNode } from '../world.js'

/** A checked node, in one incarnation. */
export interface CheckedNode {
  readonly index: number
  readonly origin: string
  readonly incarnation: number
  readonly nonce: number
  readonly node: LearningNode
  /** Periods since this incarnation began. */
  readonly period: number
  /** Whether the event is a call of `useRemainder`. */
  readonly usesRemainder: boolean
  /** The edge towards the master, as the host has said. */
  readonly master: MasterEdge
  /** The open sessions of this end, by edge. */
  readonly edges: ReadonlyMap<number, CheckedEdge>
  /** Predictor and number of own gradients before the event. */
  readonly before: { readonly predictor: Predictor; readonly own: number }
  /** The sum held from a neighbour, as `NodeInspection.neighbourSum`; cached for the event. */
  neighbourSum(edge: number): ReturnType<LearningNode['inspect']['neighbourSum']>
}

/** A link of a node, as the node sees it. */
export interface CheckedEdge {
  readonly session: number
  readonly peer: string
}

/** A node has another predictor. `restored`: loaded from its disk, before its first event. */
export type PredictorChange =
  | { readonly cause: 'restored' | 'adopted'; readonly parent: Predictor; readonly predictor: Predictor }
  | {
      readonly cause: 'updated'
      readonly parent: Predictor
      readonly predictor: Predictor
      readonly header: Header
      readonly batch: Batch
    }

/** The kind of an event. */
export type NodeEvent =
  | 'finished'
  | 'learned'
  | 'ticked'
  | 'received'
  | 'connected'
  | 'disconnected'
  | 'downloaded'
  | 'moved'
  | 'ended'

/**
 * A property that is checked during a run. Methods are called after their events and throw a `Violation` if it does not hold.
 */
export interface Invariant {
  /** A node has started, or restarted in a new incarnation; a change by `restored` may follow. */
  started?(node: CheckedNode): void
  predictorChanged?(node: CheckedNode, change: PredictorChange): void
  /** The node's gate has refused a predictor. */
  predictorRejected?(node: CheckedNode, predictor: Predictor): void
  /** The node has a proof that this maker has signed different headers with one name. */
  makerExcluded?(node: CheckedNode, maker: string): void
  /** `count` own gradients have been added. @param first number of the first input, if the node has a journal */
  learned?(node: CheckedNode, count: number, first?: number): void
  /** @param elapsed periods since the last tick; more than 1 after a pause */
  ticked?(node: CheckedNode, elapsed: number): void
  connected?(node: CheckedNode, edge: number): void
  disconnected?(node: CheckedNode, edge: number): void
  /** A node expects no further inputs, or its neighbour with this peer id has left. Called before the node is told. */
  ended?(node: CheckedNode, peer?: string): void
  frameSent?(node: CheckedNode, edge: number, frame: Uint8Array): void
  /** The neighbour has taken the first `sequence` frames of the session. */
  framesTaken?(node: CheckedNode, edge: number, sequence: number): void
  frameReceived?(node: CheckedNode, edge: number, frame: Uint8Array): void
  /** A predictor was announced to a neighbour. */
  announced?(node: CheckedNode, edge: number, message: Uint8Array): void
  frameRefused?(node: CheckedNode, edge: number, reason: string): void
  /** Called after the callbacks above, once per event. @param count own gradients added by the event */
  afterEvent?(node: CheckedNode, event: NodeEvent, count: number): void
  /** An input was predicted with the predictor of a master that has `updates` updates. */
  served?(updates: number): void
  /** A master has updated its predictor that has `updates` updates with `count` gradients. */
  updated?(updates: number, count: number): void
  /**
   * Called in the final phase, without inputs and faults.
   * @param nodes the nodes that are up
   * @returns the property that does not hold yet
   */
  checkQuiescence?(nodes: readonly CheckedNode[]): Violation | undefined
  /** The same, when the nodes have also used the gradients that were left. */
  checkEnd?(nodes: readonly CheckedNode[]): Violation | undefined
}

/** The nodes that are hostile. */
export interface HostileNodes {
  readonly count: number
  /** Number of peer ids that they have had so far. */
  readonly identities: number
  /** Whether a hostile node has or had this peer id. */
  hasIdentity(peer: string): boolean
  isHostile(node: number): boolean
}

/** The run, as invariants may use it. */
export interface CheckedRun extends Learning {
  readonly scenario: Scenario
  readonly faults: readonly Fault[]
  readonly topology: Topology
  readonly adversaries: HostileNodes
  /** Virtual milliseconds. */
  readonly now: number
  /** Virtual ms of the last fault, if all running nodes are linked now. */
  readonly linkedSince: number | undefined
  /** Whether the node serves inputs and receives messages. */
  isUp(node: number): boolean
}

/** Creates the invariants for one run; they may have state. */
export type Invariants = (run: CheckedRun) => readonly Invariant[]
