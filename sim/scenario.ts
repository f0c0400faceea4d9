/**
 * A scenario: everything that a run depends on, as plain data. YAML files and `--set key=value` give parts of it; what is
 * left out has a default. A wrong value is told with its place, what was given and what is allowed.
 */
import { z } from 'zod'
import { ALGORITHMS } from './algorithms/index.js'
import { STREAMS } from './inputs.js'
import { TOPOLOGIES } from './topology.js'

/** A scenario that cannot be run. */
export class ScenarioError extends Error {
  static readonly code = 'ERR_SCENARIO'
  readonly code = ScenarioError.code
  override readonly name = 'ScenarioError'
}

const share = z.number().min(0).max(1)
const count = z.int().min(1)
const duration = z.number().positive()

const faults = z.strictObject({
  /** Share of the time for which each node is down, on average. */
  crashShare: share.default(0),
  /** Mean length of such a time, in virtual milliseconds. */
  downtime: duration.default(50),
  /** Share of the time for which the network is cut in two. */
  partitionShare: share.default(0),
  /** Length of such a time, in virtual milliseconds. */
  partitionTime: duration.default(200)
})

const schema = z.strictObject({
  algorithm: z.enum(ALGORITHMS as [string, ...string[]]).default('admb'),
  topology: z.enum(TOPOLOGIES).default('tree'),
  nodes: count.max(1_000_000).default(16),
  /** Most neighbours of a node; a `tree` has one child less a node. */
  degree: z.int().min(2).max(1000).default(3),
  /** Order of the nodes' indices, which decides between predictors. */
  labels: z.enum(['ascending', 'random', 'hub-highest']).default('ascending'),
  /** Whether all nodes start from one predictor, or each from one of its own with as many updates. */
  starts: z.enum(['common', 'distinct']).default('common'),
  stream: z.enum(STREAMS).default('logistic'),
  /** Features an input. */
  dimension: count.max(1_000_000).default(20),
  /** Standard deviation of the noise of `least-squares`. */
  noise: z.number().min(0).default(0.5),
  /** Inputs of all nodes together. */
  inputs: count.default(100_000),
  /** Virtual milliseconds between two inputs of a node. */
  interval: duration.default(1),
  /** b: gradients an update. */
  batch: count.default(512),
  /** T in virtual milliseconds. */
  period: duration.default(1),
  /** Mean one-way latency in virtual milliseconds. */
  latency: duration.default(1),
  /** How latencies are distributed. */
  delay: z.enum(['constant', 'uniform', 'exponential', 'log-normal']).default('constant'),
  /** Share of messages that are lost. */
  loss: share.default(0),
  /** Share of messages that arrive twice. */
  duplicate: share.default(0),
  /** S of ADMB's carry-over, in periods. */
  carry: z.int().min(0).default(16),
  rule: z.enum(['dual-averaging', 'mirror-descent', 'adagrad', 'momentum', 'adam']).default('dual-averaging'),
  average: z.enum(['uniform', 'exponential', 'tail']).default('uniform'),
  seed: z.int().min(0).default(1),
  /** Whether every event is checked for what must never happen. */
  checks: z.boolean().default(true),
  faults: faults.default({ crashShare: 0, downtime: 50, partitionShare: 0, partitionTime: 200 })
})

export type Scenario = z.infer<typeof schema> & { readonly algorithm: (typeof ALGORITHMS)[number] }
export type Faults = Scenario['faults']

/** Every key that `--set` takes, nested ones with a dot. */
export const SCENARIO_KEYS: readonly string[] = Object.keys(schema.shape).flatMap(key =>
  key === 'faults' ? Object.keys(faults.shape).map(inner => `faults.${inner}`) : [key]
)

/**
 * Fills in defaults and checks.
 * @param source what to name in errors: the file, or `--set`
 * @throws ScenarioError
 */
export function parseScenario(value: unknown, source: string): Scenario {
  const parsed = schema.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const given = issue.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], value)
    const where = issue.path.length > 0 ? `${issue.path.join('.')}` : 'the scenario'
    const shown = given === undefined ? '' : ` (given: ${JSON.stringify(given)})`
    throw new ScenarioError(`${source}: ${where}: ${issue.message}${shown}`)
  }
  const scenario = parsed.data as Scenario
  if (scenario.faults.partitionShare > 0 && scenario.nodes < 2) {
    throw new ScenarioError(`${source}: faults.partitionShare: one node cannot be partitioned: give at least 2 nodes`)
  }
  return scenario
}
