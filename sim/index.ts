/** The simulator: scenarios in, measured runs out. */
export { ALGORITHMS, type AlgorithmName } from './algorithms/index.js'
export { type Case, type Experiment, experimentNamed, experiments } from './experiments.js'
export { type Found, type FuzzReport, fuzz } from './fuzz/fuzz.js'
export { builtInScenarios, loadScenario, override } from './library.js'
export type { Observer } from './observer.js'
export type { CurvePoint, RunResult } from './result.js'
export { parseScenario, SCENARIO_KEYS, type Scenario, ScenarioError } from './scenario.js'
export { type SimulateOptions, simulate } from './simulate.js'
