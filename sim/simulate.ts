/** The simulator's one function: a scenario in, a measured run out. */
import type { Recipe } from '../src/admb/index.js'
import type { Invariants } from './checkers/index.js'
import type { Fault } from './faults/schedule.js'
import type { Inputs } from './inputs.js'
import type { NodeFactory } from './learning-node.js'
import type { Observer } from './observer.js'
import type { RunResult } from './result.js'
import type { Scenario } from './scenario.js'
import { Simulation } from './simulation.js'
import type { RecordedStream } from './streams/replay.js'
import type { Topology } from './topology.js'
import type { WiringFactory } from './wiring/create.js'

/** What takes the place of what a scenario says. */
export interface SimulateOptions {
  /** Default: the scenario's stream. */
  readonly inputs?: Inputs
  /** What the stream `file` consists of. */
  readonly data?: RecordedStream
  /** Default: the scenario's rule and average. */
  readonly recipe?: Recipe
  /** Default: drawn as the scenario says. */
  readonly faults?: readonly Fault[]
  readonly observer?: Observer
  /** Properties to watch. Default: those that hold always if the scenario's `checks` is on, else none. */
  readonly invariants?: Invariants
  /** What learns at each node with the algorithm `admb`. Default: AdmbNode. */
  readonly node?: NodeFactory
  /** The tree, of as many nodes as the scenario has. Default: the scenario's. */
  readonly topology?: Topology
  /** Who is connected with whom, and how that is mended. Default: as the scenario's topology says. */
  readonly wiring?: WiringFactory
  /**
   * Whether to go on after the last input, without faults, until everything has settled; a violation if it does not.
   * Default: false.
   */
  readonly settle?: boolean
}

/** Runs a scenario: same scenario, same result, on any machine (`seconds` apart). */
export function simulate(scenario: Scenario, options: SimulateOptions = {}): RunResult {
  const began = performance.now()
  const result = new Simulation(scenario, options).run()
  return { ...result, seconds: (performance.now() - began) / 1000 }
}
