/**
 * Support for property tests: random scenarios and fault schedules, the properties of ADMB, and the simulator for custom update
 * rules, precedences, nodes and overlays. See docs/testing.md.
 * @module admb/testing
 */
export {
  type CheckedNode,
  type CheckedRun,
  type Invariant,
  type Invariants,
  invariants,
  type PredictorChange,
  Violation
} from '../checkers/index.js'
export type { Fault } from '../faults/schedule.js'
export type { LearningNode, NodeFactory } from '../learning-node.js'
export type { RunObserver, SimulateOptions } from '../options.js'
export type { RunResult } from '../result.js'
export { parseScenario, type Scenario } from '../scenario.js'
export { simulate } from '../simulate.js'
export { fromParents, type Topology } from '../topology.js'
export type { WiringFactory, WiringRun } from '../wiring/create.js'
export { FixedWiring } from '../wiring/fixed.js'
export type { Wiring } from '../wiring/wiring.js'
export { type Extent, faultSchedules } from './fault-schedules.js'
export { scenarios } from './scenarios.js'
export { checkExactly, type Trial, trials } from './trials.js'
