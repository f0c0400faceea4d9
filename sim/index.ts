/** The simulator: scenarios in, measured runs out. */
export { ALGORITHMS, type AlgorithmName } from './algorithms/index.js'
export { type Case, type Experiment, experimentNamed, experiments } from './experiments.js'
export { type FuzzReport, fuzz, type Violation } from './fuzz/fuzz.js'
export { builtInScenarios, loadScenario, override } from './library.js'
export { parseScenario, SCENARIO_KEYS, type Scenario, ScenarioError } from './scenario.js'
export { type RunResult, simulate } from './simulate.js'
