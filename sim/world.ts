/**
 * What an algorithm sees of the simulated world, and what the world asks of an algorithm. Every algorithm of the papers is
 * a file behind this one interface, so that all are measured on the same inputs over the same network.
 */
import type { AdmbOptions, Predictor, PredictorId, Recipe } from '../src/admb/index.js'
import { nextPredictor } from '../src/admb/index.js'
import type { Blocks, Examples, Learner } from '../src/learner/index.js'
import type { LearningNode } from './learning-node.js'
import type { Topology } from './topology.js'
import type { Connectable } from './wiring/wiring.js'

/** The keys of a scenario that algorithms read beside what `World` names. */
export interface AlgorithmOptions {
  readonly starts: 'common' | 'distinct'
  /** Bytes of vectors above which a frame is split into fragments. */
  readonly fragmentBytes: number
  /** Periods between two checkpoints of a node. */
  readonly checkpoint: number
  /** Virtual milliseconds until a checkpoint is on the disk. */
  readonly diskTime: number
}

export interface World {
  readonly scenario: AlgorithmOptions
  readonly topology: Topology
  readonly learner: Learner
  readonly recipe: Recipe
  /** The predictor that every node starts from. */
  readonly start: Predictor
  /** Whether nodes may take a predictor that they know by name from one another's memory, instead of making it again. */
  readonly sharesPredictors: boolean
  /** b: gradients an update. */
  readonly batch: number
  /** T in virtual milliseconds. */
  readonly period: number
  /** Mean one-way latency in virtual milliseconds. */
  readonly latency: number
  /** S in periods, of ADMB's carry-over. */
  readonly carry: number
  /** Identity of each node, as it decides precedence; another one once a node's disk is lost. */
  readonly labels: readonly string[]
  /** Virtual milliseconds. */
  readonly now: number
  /** Whether the node serves inputs and hears messages now. */
  isUp(node: number): boolean
  /** A node holds another predictor from now on. */
  holds(node: number, id: PredictorId, how: 'updated' | 'adopted' | 'restarted'): void
  /** A node that learns by ADMB, watched where the run is; one of the same index before it is gone. */
  createNode(index: number, options: AdmbOptions): LearningNode
  /** When a link has sent what was given to it: the past if it is idle, as it always is without a limit of bandwidth. */
  freeAt(from: number, to: number): number
  /** Sends a message, which must not be changed any more; `bytes` is its size on a wire. */
  send(from: number, to: number, message: unknown, bytes: number): void
  /** Calls `timer(node, tag)` later, unless the node has crashed or left by then. */
  after(delay: number, node: number, tag: number): void
}

/** What a node finds when it starts again. */
export type Disk = 'kept' | 'lost'

export interface Tally {
  /** Updates of the best predictor. */
  readonly updates: number
  /** Predictors taken over from another node. */
  readonly adoptions: number
  /** Gradients that no update has used or will use. */
  readonly discarded: number
}

export interface Algorithm extends Connectable {
  /** The parameters that serve a node's predictions. */
  serving(node: number): Blocks
  /** A node has scored one input and may learn from it. */
  input(node: number, examples: Examples): void
  /** A period T has passed at a node. */
  tick(node: number): void
  receive(to: number, from: number, message: unknown): void
  timer(node: number, tag: number): void
  /** The node crashed or left: its memory is gone; its disk is as `restart` finds it. */
  crash(node: number): void
  /** A crashed node is back, or one joins: with a lost disk under a new identity. */
  restart(node: number, disk: Disk): void
  /** At the end of a run. */
  tally(): Tally
}

export type AlgorithmFactory = (world: World) => Algorithm

/** An update of one of the simpler algorithms, which need no names. */
export function advance(world: World, predictor: Predictor, sum: Blocks, count: number): Predictor {
  return nextPredictor(predictor, { sum, count }, NOBODY, { ...world.recipe, digest: () => '' })
}

const NOBODY = { origin: '', incarnation: 0 }

/** Bytes of one vector of the model's parameters. */
export function vectorBytes(world: World): number {
  return 4 * world.learner.layout.blocks.reduce((sum, block) => sum + block.length, 0)
}

/** A gradient sum in the making. */
export class Accumulator {
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

  addSum(sum: Blocks, count: number): void {
    for (let b = 0; b < sum.length; b++) for (let i = 0; i < sum[b].length; i++) this.sum[b][i] += sum[b][i]
    this.count += count
  }

  /** Hands the sum over and starts a new one. */
  take(): { readonly sum: Float32Array[]; readonly count: number } {
    const { sum, count } = this
    this.sum = this.#zeros()
    this.count = 0
    return { sum, count }
  }

  #zeros(): Float32Array[] {
    return this.#learner.layout.blocks.map(block => new Float32Array(block.length))
  }
}
