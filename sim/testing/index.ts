/**
 * Property tests of one's own: random scenarios and fault schedules, the properties of ADMB, and the simulator to put an own
 * update rule, precedence, node or overlay under them. See docs/testing.md.
 */
export {
  type Invariant,
  type Invariants,
  invariants,
  type Site,
  type Turn,
  Violation,
  type WatchedRun
} from '../checkers/index.js'
export type { Fault } from '../faults/schedule.js'
export { checkExactly } from '../fuzz/check.js'
export type { LearningNode, NodeFactory } from '../learning-node.js'
export type { RunResult } from '../result.js'
export { parseScenario, type Scenario } from '../scenario.js'
export { type SimulateOptions, simulate } from '../simulate.js'
export { fromParents, type Topology } from '../topology.js'
export type { WiringFactory, WiringRun } from '../wiring/create.js'
export { FixedWiring } from '../wiring/fixed.js'
export type { Wiring } from '../wiring/wiring.js'
export { type Extent, faultSchedules } from './fault-schedules.js'
export { scenarios } from './scenarios.js'
export { type Trial, trials } from './trials.js'
