/**
 * The interface between an algorithm and the simulated world. Every algorithm implements it, so that all of them are measured on
 * the same inputs and the same network.
 */
import {
  type AdmbOptions,
  type DrivenNode,
  nextPredictor,
  type Predictor,
  type PredictorId,
  type Recipe
} from '../src/admb/index.js'
import type {
  BatchRule,
  Blocks,
  BoundedTrust,
  Examples,
  InfluenceRule,
  Learner,
  LocalSteps,
  SumBudget
} from '../src/learning/index.js'
import { sumOf } from '../src/numeric/sums.js'
import type { Random } from './engine/random.js'
import type { Topology } from './topology.js'
import type { Connectable } from './wiring/wiring.js'

/** The keys of a scenario that algorithms read, except those that `World` has itself. */
interface AlgorithmOptions {
  readonly starts: 'common' | 'distinct'
  /** Whole predictors of at most this many bytes are sent without a request. */
  readonly pushBytes: number
  readonly downloadTime?: number
  /** Bytes of vectors above which a frame is split into fragments. */
  readonly fragmentBytes: number
  /** Whether frames are as on a network. */
  readonly wire: boolean
  /** Bytes of the integer sums that are kept for a neighbour as bases of differences. */
  readonly keptBytes: number
  /** Bytes that a link carries in a virtual millisecond; 0: no limit. */
  readonly bandwidth: number
  /** Bytes that a node sends, and receives, in a virtual millisecond; 0: no limit. */
  readonly nodeBandwidth: number
  /** t_u: virtual milliseconds that a node takes for an update. */
  readonly updateTime: number
  /** Periods between two checkpoints of a node. */
  readonly checkpoint: number
  /** Virtual milliseconds until a checkpoint is on the disk. */
  readonly diskTime: number
  /** Whether nodes keep a journal of their segments. */
  readonly journal: boolean
  /** Whether nodes refuse whole predictors that are worse on their inputs than the held and the starting one. */
  readonly gate: boolean
  /** T in virtual milliseconds. */
  readonly period: number
  /** Whether nodes sign headers and verify those of others. */
  readonly signed: boolean
  /** Whether nodes send sums less often than each period. */
  readonly autoPeriod: boolean
  /** H: steps that a node makes of its own between exchanges. @default as in the algorithm's paper */
  readonly localSteps?: number | undefined
  /** What nodes use of others. */
  readonly trust: BoundedTrust & { readonly signers: number }
}

/** Why a node has another predictor. `restarted`: it loaded its last checkpoint. */
export type PredictorCause = 'updated' | 'adopted' | 'restarted'

/** What nodes learn with. */
export interface Learning {
  readonly learner: Learner
  readonly recipe: Recipe
  /** The starting predictor of every node. */
  readonly start: Predictor
  /** How b adapts; undefined if it is fixed. */
  readonly adaptiveBatch: BatchRule | undefined
  /** Creates the local steps of a node; undefined if there are none. */
  readonly localSteps: (() => LocalSteps) | undefined
  /** Bound of the sum of each node; undefined without one. */
  readonly influence: InfluenceRule | undefined
  /** Budget of the elements of the sum of each node; undefined without one. */
  readonly budget: SumBudget | undefined
  /** Noise of the sums of all nodes; undefined without it. */
  readonly noise: AdmbOptions['noise']
}

export interface World extends Learning {
  readonly scenario: AlgorithmOptions
  readonly topology: Topology
  /** Draws that algorithms make themselves. */
  readonly random: Random
  /** Whether nodes may share predictors in memory instead of recomputing them. */
  readonly sharesPredictors: boolean
  /** b: gradients per update; the least b if it adapts. */
  readonly batch: number
  /** b at a predictor. */
  batchOf(predictor: Predictor): number
  /** T in virtual milliseconds. */
  readonly period: number
  /** Mean one-way latency in virtual milliseconds. */
  readonly latency: number
  /** Whether links deliver messages in order, and lose none while they are up. */
  readonly isOrdered: boolean
  /** S of ADMB's carry-over, in periods. */
  readonly carry: number
  /** Identity of each node, which decides precedence. It changes when a node loses its disk. */
  readonly labels: readonly string[]
  /** Whether some nodes are hostile, so that others may meet predictors at which gradients are not finite. */
  readonly hasAdversaries: boolean
  /** Virtual milliseconds. */
  readonly now: number
  /** Whether the node serves inputs and receives messages. */
  isUp(node: number): boolean
  /** Neighbours of a node in the tree, now. */
  neighbours(node: number): Iterable<number>
  /** Reports that a node has another predictor. */
  predictorChanged(node: number, id: PredictorId, cause: PredictorCause): void
  /**
   * Reports an update of an algorithm that does not identify predictors.
   * @param node undefined for all nodes, which are one learner
   * @param updates of the predictor before
   * @param count gradients of the batch
   */
  updated(node: number | undefined, updates: number, count: number): void
  /** Reports that a node has refused a frame of a neighbour. */
  refused(node: number, neighbour: number): void
  /** Reports that a node has a proof against a maker. */
  excluded(node: number, maker: string): void
  /** Creates a node that learns by ADMB, with invariants checked if the run checks them. It replaces the previous node of that index. */
  createNode(index: number, options: AdmbOptions): LearningNode
  /** Time at which a link has transmitted everything queued on it. In the past if it is idle, and always without a limit of bandwidth. */
  freeAt(from: number, to: number): number
  /** Sends a message, which must not change afterwards; `bytes` is its size on the wire. */
  send(from: number, to: number, message: unknown, bytes: number): void
  /** Calls `timer(node, tag)` after `delay` ms, unless the node has crashed or left by then. */
  startTimer(delay: number, node: number, tag: number): void
}

/** The disk of a node that restarts. `reset`: its key is kept, but no state, so that its runs are numbered from 1 again. */
export type DiskState = 'kept' | 'lost' | 'reset'

export interface AlgorithmTotals {
  /** Updates of the best predictor. */
  readonly updates: number
  /** Predictors adopted from another node. */
  readonly adoptions: number
  /** Gradients on the lineage of the best predictor. */
  readonly used: number
  /** Gradients that nodes hold for later updates. */
  readonly held: number
  /** Gradients that no update has used or will use. @default all that are neither used nor held */
  readonly discarded?: number
}

/** What of a predictor predictions are made with. */
export type Served = Pick<Predictor, 'parameters' | 'average'>

export interface Algorithm extends Connectable {
  /** The predictor of a node. The node predicts with its average, which is the newest parameters if the scenario averages none. */
  serving(node: number): Served
  /** Updates of the predictor that a node predicts with. Only for algorithms whose dropped gradients are checked. */
  version?(node: number): number
  /** A node has scored one input and may learn from it. @param number of the input in the run, from 0 */
  input(node: number, examples: Examples, number: number): void
  /** A period T has ended at a node. */
  tick(node: number): void
  receive(to: number, from: number, message: unknown): void
  timer(node: number, tag: number): void
  /** The node has crashed or left and lost its memory; `restart` says whether it kept its disk. */
  crash(node: number): void
  /** A crashed node restarts, or a node joins. With a lost disk it has a new identity. */
  restart(node: number, disk: DiskState): void
  /** No further inputs arrive: the node uses the gradients that are left, once nothing else changes. @default nothing */
  finish?(node: number): void
  /** Called at the end of a run. */
  totals(): AlgorithmTotals
}

export type AlgorithmFactory = (world: World) => Algorithm

/**
 * The next predictor of an algorithm that does not identify predictors: id and digest are left blank.
 * @param node that makes the update; undefined for all nodes, which are one learner
 */
export function advance(
  world: World,
  node: number | undefined,
  predictor: Predictor,
  { sum, count }: GradientSum
): Predictor {
  world.updated(node, predictor.id.updates, count)
  const next = nextPredictor(predictor, { sum: sumOf(sum), count }, NO_ORIGIN, { ...world.recipe, digest: () => '' })
  lineageCounts.set(next, gradientsOn(predictor) + count)
  return next
}

const lineageCounts = new WeakMap<Predictor, number>()

/** Number of gradients on the lineage of a predictor that `advance` has returned; 0 for a starting one. */
export function gradientsOn(predictor: Predictor): number {
  return lineageCounts.get(predictor) ?? 0
}

/** The predictor with the most updates, the first of several. */
export function bestOf(predictors: readonly Predictor[]): Predictor {
  return predictors.reduce((best, other) => (other.id.updates > best.id.updates ? other : best))
}

/** A sum of gradients, and of how many. */
export interface GradientSum {
  readonly sum: Blocks
  readonly count: number
}

/** Number of gradients in all of these sums. */
export function countIn(sums: Iterable<Pick<GradientSum, 'count'>>): number {
  let total = 0
  for (const { count } of sums) total += count
  return total
}

const NO_ORIGIN = { origin: '', incarnation: 0, nonce: 0 }

/** Bytes of one vector of the model's parameters. */
export function vectorBytes(world: World): number {
  return 4 * world.learner.layout.blocks.reduce((sum, block) => sum + block.length, 0)
}

export class GradientAccumulator implements GradientSum {
  readonly #learner: Learner
  sum: Float32Array[]
  count = 0

  constructor(learner: Learner) {
    this.#learner = learner
    this.sum = this.#zeros()
  }

  add(parameters: Blocks, examples: Examples): void {
    this.#learner.addGradient(parameters, examples, 0, examples.size, this.sum)
    this.count += examples.size
  }

  addSum({ sum, count }: GradientSum): void {
    for (let b = 0; b < sum.length; b++) for (let i = 0; i < sum[b].length; i++) this.sum[b][i] += sum[b][i]
    this.count += count
  }

  /** Returns the sum and resets the accumulator. */
  take(): GradientSum {
    const { sum, count } = this
    this.sum = this.#zeros()
    this.count = 0
    return { sum, count }
  }

  #zeros(): Float32Array[] {
    return this.#learner.layout.blocks.map(block => new Float32Array(block.length))
  }
}

/** Nodes with a predictor on the disk and a gradient sum in memory: what an algorithm begins with. */
export function createWorkers(world: World) {
  const predictors: Predictor[] = world.topology.neighbours.map(() => world.start)
  const own = predictors.map(() => new GradientAccumulator(world.learner))
  const algorithm = {
    serving: node => predictors[node],
    input(node, examples) {
      own[node].add(predictors[node].parameters, examples)
    },
    tick: () => undefined,
    receive: () => undefined,
    timer: () => undefined,
    crash(node) {
      own[node].take()
    },
    restart(node, disk) {
      if (disk !== 'kept') predictors[node] = world.start
    }
  } satisfies Omit<Algorithm, 'totals'>
  return { predictors, own, algorithm }
}

/** The interface of a node that learns together with its neighbours. */
export type LearningNode = DrivenNode

/** Creates the node with that index. Called again, with a new incarnation or identity, when the node restarts. */
export type NodeFactory = (options: AdmbOptions, index: number) => LearningNode
