/** The public interface of the simulator. Terms: docs/reference/glossary.md. */

export { type AlgorithmName, algorithmNames, algorithms, paperAlgorithms } from './algorithms/index.js'
export { type Experiment, type ExperimentCase, experimentNamed, experiments } from './experiments.js'
export { parseFaults } from './faults/draw.js'
export type { Fault } from './faults/schedule.js'
export {
  type FuzzReport,
  type FuzzViolation,
  fuzz,
  fuzzPortion,
  type NodeState,
  type Replay,
  RUNS_PER_PORTION,
  replay,
  type Step
} from './fuzz/fuzz.js'
export { type ObservedRun, type RunObserver, type SimulateOptions, simulateType } from './options.js'
export { describeTerms } from './regret/bounds.js'
export type { BoundTerms, CurvePoint, RegretAccounts, RunResult } from './result.js'
export { averageOf, parseScenario, SCENARIO_KEYS, type Scenario, ScenarioError } from './scenario.js'
export { applyOverrides, builtInScenarios, loadScenario } from './scenarios.js'
export { simulate } from './simulate.js'
export type { RecordedStream } from './streams/inputs.js'
export { parseTrialScenario, type Trial } from './testing/trials.js'
export type { PredictorCause } from './world.js'
