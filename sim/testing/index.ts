/**
 * Support for property tests: random scenarios and fault schedules, the properties of ADMB, and the simulator for custom update
 * rules, precedences, nodes and overlays. See docs/guides/testing.md.
 * @module admb/testing
 */
export type { AdaptiveBatch, LocalSteps, Unsent } from '../../src/learning/index.js'
export {
  type CheckedEdge,
  type CheckedNode,
  type CheckedRun,
  type HostileNodes,
  type Invariant,
  type Invariants,
  invariants,
  type NodeEvent,
  type PredictorChange,
  Violation
} from '../checkers/index.js'
export type { Random } from '../engine/random.js'
export type {
  Clog,
  Crash,
  Fault,
  Hang,
  Heal,
  Membership,
  NodeFault,
  Partition,
  Pause,
  Population,
  Restart,
  Rewiring
} from '../faults/schedule.js'
export type { Reachability, Transport } from '../network/transport.js'
export type { ObservedRun, RunObserver, SimulateOptions } from '../options.js'
export type { BoundTerms, CurvePoint, RunResult, StatusTraffic } from '../result.js'
export { parseScenario, type Scenario } from '../scenario.js'
export { simulate } from '../simulate.js'
export type { Inputs, RecordedStream } from '../streams/inputs.js'
export { fromParents, type Topology } from '../topology.js'
export type { WiringFactory, WiringRun } from '../wiring/create.js'
export { FixedWiring } from '../wiring/create.js'
export type { Connectable, Message, SessionChannel, StopCause, Wiring } from '../wiring/wiring.js'
export type { Learning, LearningNode, NodeFactory, PredictorCause } from '../world.js'
export {
  checkExactly,
  type Extent,
  type FixedKeys,
  faultSchedules,
  hostileTrials,
  scenarios,
  type Trial,
  trials
} from './trials.js'
