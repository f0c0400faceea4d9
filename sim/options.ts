/** Options of a run beside its scenario, and the observer interface for reports, checkers and replays. */
import type { AdmbOptions, PredictorId, Recipe } from '../src/admb/index.js'
import { type Learner, type OptionsOf, optionTypes } from '../src/learning/index.js'
import type { Invariants } from './checkers/index.js'
import type { Fault } from './faults/schedule.js'
import type { Scenario } from './scenario.js'
import type { Inputs, RecordedStream } from './streams/inputs.js'
import type { Topology } from './topology.js'
import type { WiringFactory } from './wiring/create.js'
import type { NodeFactory, PredictorCause } from './world.js'

const { callback, flag, list, object, typed } = optionTypes
const simulateTypes = {
  /** @default the scenario's stream */
  inputs: object<Inputs>('the inputs of a stream'),
  /** The data of the stream `file`. @default none */
  data: object<RecordedStream>('a recorded stream'),
  /** @default the linear model of the inputs */
  learner: object<Learner>('the result of createLearner'),
  /** @default the scenario's rule and average */
  recipe: object<Recipe>('{ rule, averaging, digest }'),
  /** Noise of the own sums of nodes. @default that of the scenario */
  noise: typed<AdmbOptions['noise']>(callback),
  /** @default drawn from the scenario's `faults` */
  faults: typed<readonly Fault[]>(list),
  /** Observes the run. @default none */
  observer: object<RunObserver>('{ onInput }'),
  /** Properties to check. @default the properties that always hold if the scenario's `checks` is on, else none */
  invariants: typed<Invariants>(callback),
  /** Creates the nodes of the algorithms `admb` and `admb-sender`. @default AdmbNode */
  node: typed<NodeFactory>(callback),
  /** The tree, with as many nodes as the scenario. @default the scenario's */
  topology: object<Topology>('the tree of a scenario'),
  /** Creates the overlay: the sessions between nodes, and their repair. @default as the scenario's topology requires */
  wiring: typed<WiringFactory>(callback),
  /**
   * Whether to continue after the last input, without faults, until the network is quiescent. Reports a violation if it does
   * not become quiescent. @default false
   */
  quiesce: flag
}

/**
 * Overrides of what a scenario determines.
 * @interface
 */
export type SimulateOptions = OptionsOf<typeof simulateTypes>

export const simulateType = optionTypes.options<SimulateOptions>(simulateTypes)

/** The state of a run, for observers. */
export interface ObservedRun {
  readonly scenario: Scenario
  readonly topology: Topology
  /** Identity of each node, which changes when a node loses its disk. */
  readonly labels: readonly string[]
  /** Inputs of correct nodes so far, their total loss, and that of the optimum, which is 0 if it is found in hindsight. */
  readonly losses: { readonly count: number; readonly loss: number; readonly bestLoss: number }
  /** Whether the node serves inputs and receives messages. */
  isUp(node: number): boolean
  /** Neighbours of a node in the tree. */
  neighbours(node: number): Iterable<number>
  /** Whether a partition separates two nodes, in this direction. */
  isCut(from: number, to: number): boolean
}

/** Callbacks during a run. They must not change it. */
export interface RunObserver {
  /** Called before the first event. */
  onStart?(run: ObservedRun): void
  /** @param inputs number of inputs served so far */
  onInput?(inputs: number): void
  /**
   * Called before a fault is injected, except faults that have no effect. A node that is absent at first leaves at time 0.
   * @param time virtual ms
   */
  onFault?(time: number, fault: Fault): void
  /** Called before an event is processed. @param time virtual ms @param describe formats the event as one line */
  beforeEvent?(time: number, describe: () => string): void
  /** A node has another predictor from now on. */
  onPredictorChange?(time: number, node: number, id: PredictorId, cause: PredictorCause): void
  /** Called after an event has been processed. An exception ends the run. */
  afterEvent?(time: number): void
}
