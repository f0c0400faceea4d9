/**
 * A scenario: everything that a run depends on, as plain data. YAML files and `--set key=value` give parts of it; what is
 * left out has a default. A wrong value is told with its place, what was given and what is allowed.
 */

import { z } from 'zod'
import { CodedError } from '../src/base/errors.js'
import { modelNames } from '../src/learner/index.js'
import { ALGORITHMS } from './algorithms/index.js'
import { faultKeys } from './faults/keys.js'
import { STREAMS } from './streams/inputs.js'
import { TOPOLOGIES } from './topology.js'

/** A scenario that cannot be run. */
export class ScenarioError extends CodedError {
  static override readonly code = 'ERR_SCENARIO'
}

const share = z.number().min(0).max(1)
const count = z.int().min(1)
const duration = z.number().positive()

const schema = z.strictObject({
  algorithm: z.enum(ALGORITHMS as [string, ...string[]]).default('admb'),
  topology: z.enum(TOPOLOGIES).default('tree'),
  nodes: count.max(1_000_000).default(16),
  /** Most neighbours of a node; a `tree` has one child less a node. */
  degree: z.int().min(2).max(1000).default(3),
  /** Links of a node to others that it knows from the start, on `overlay`. */
  linkDegree: z.int().min(2).max(1000).default(6),
  /** Virtual ms between heartbeats of `overlay`, whose other timers keep their proportions to it. Default: ten latencies. */
  heartbeat: duration.optional(),
  /** Order of the nodes' indices, which decides between predictors. */
  labels: z.enum(['ascending', 'random', 'hub-highest']).default('ascending'),
  /** Whether all nodes start from one predictor, or each from one of its own with as many updates. */
  starts: z.enum(['common', 'distinct']).default('common'),
  stream: z.enum(STREAMS).default('logistic'),
  /** Features an input. */
  dimension: count.max(1_000_000).default(20),
  /** Standard deviation of the noise of `least-squares`. */
  noise: z.number().min(0).default(0.5),
  /** Share of inputs whose class is exchanged for another one. */
  labelNoise: share.default(0),
  /** Turns that the best predictor of a synthetic stream makes during the run. */
  drift: z.number().min(0).default(0),
  /** Of the stream `file`: what `admb train` takes as --data, --format, --label, --model, --classes, --scale, --hash-bits. */
  data: z.string().min(1).optional(),
  format: z.string().min(1).optional(),
  label: z.string().min(1).optional(),
  model: z.enum(modelNames).optional(),
  classes: z.int().min(2).optional(),
  scale: z.enum(['none', 'standard']).optional(),
  hashBits: z.int().min(1).max(30).optional(),
  /** Inputs of all nodes together. */
  inputs: count.default(100_000),
  /** Virtual milliseconds between two inputs of a node. */
  interval: duration.default(1),
  /** Deviation of the logarithm of the nodes' speeds; the rate of all together stays. */
  speedSpread: z.number().min(0).default(0),
  /** Whether inputs and periods of all nodes fall together, or each node has an offset of its own. */
  phases: z.enum(['aligned', 'spread']).default('aligned'),
  /** Virtual milliseconds before the first input, in which the tree can form. */
  warmup: z.number().min(0).default(0),
  /** b: gradients an update. */
  batch: count.default(512),
  /** T in virtual milliseconds. */
  period: duration.default(1),
  /** Mean one-way latency in virtual milliseconds. */
  latency: duration.default(1),
  /** How latencies are distributed. */
  delay: z.enum(['constant', 'uniform', 'exponential', 'log-normal']).default('constant'),
  /** Deviation of the logarithm of the links' mean latencies. */
  linkSpread: z.number().min(0).default(0),
  /** Bytes per virtual millisecond on each direction of a link, behind one another; 0: no limit. */
  bandwidth: z.number().min(0).default(0),
  /** Share of messages that are lost. */
  loss: share.default(0),
  /** Share of messages that arrive twice. */
  duplicate: share.default(0),
  /** Share of messages that take three latencies longer, on average, so that others overtake them. */
  reorder: share.default(0),
  /** S of ADMB's carry-over, in periods. */
  carry: z.int().min(0).default(16),
  /** Frames of ADMB with vectors of more bytes go in parts of about that many. */
  fragmentBytes: z
    .int()
    .min(0)
    .default(1 << 20),
  /** Periods between two checkpoints of an ADMB node. */
  checkpoint: count.default(8),
  /** Virtual milliseconds until a checkpoint is on the disk. */
  diskTime: z.number().min(0).default(0),
  rule: z.enum(['dual-averaging', 'mirror-descent', 'adagrad', 'momentum', 'adam']).default('dual-averaging'),
  average: z.enum(['uniform', 'exponential', 'tail']).default('uniform'),
  seed: z.int().min(0).default(1),
  /** Whether every event is checked for what must never happen. */
  checks: z.boolean().default(true),
  faults: faultKeys.prefault({})
})

export type Scenario = z.infer<typeof schema> & { readonly algorithm: (typeof ALGORITHMS)[number] }

/** Every key that `--set` takes, nested ones with a dot. */
export const SCENARIO_KEYS: readonly string[] = Object.keys(schema.shape).flatMap(key =>
  key === 'faults' ? Object.keys(faultKeys.shape).map(inner => `faults.${inner}`) : [key]
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
  const problem = impossible(scenario)
  if (problem !== undefined) throw new ScenarioError(`${source}: ${problem}`)
  checkStream(scenario, source)
  return scenario
}

/** What keys do not allow together, and what to do about it. */
function impossible({ topology, nodes, latency, heartbeat, loss, faults }: Scenario): string | undefined {
  const { partitionShare, partitionTime, partitionMin = 0 } = faults
  if (partitionShare > 0 && nodes < 2) {
    return 'faults.partitionShare: one node cannot be partitioned: give at least 2 nodes'
  }
  if (partitionMin > partitionTime) {
    const most = `give at most faults.partitionTime (${partitionTime})`
    return `faults.partitionMin: the least length (${partitionMin}) is above the mean: ${most}`
  }
  if (topology === 'overlay' && heartbeat !== undefined && 2 * heartbeat <= latency) {
    const within = 'an answer must come within the four heartbeats of silence that count as death'
    return `heartbeat: ${within}: give more than half the latency (${latency / 2})`
  }
  if (topology === 'overlay' && loss > 0.9) {
    return `loss: sessions do not stand where nearly all is lost (${loss}): give at most 0.9 with topology overlay`
  }
  return undefined
}

const FILE_KEYS = ['data', 'format', 'label', 'model', 'classes', 'scale', 'hashBits'] as const

function checkStream(scenario: Scenario, source: string): void {
  const { stream, dimension, labelNoise, drift, data, model } = scenario
  const isFile = stream === 'file'
  if (isFile && data === undefined) throw new ScenarioError(`${source}: data: stream file needs one: give data=FILE`)
  const stray = FILE_KEYS.find(key => scenario[key] !== undefined)
  if (!isFile && stray !== undefined) {
    throw new ScenarioError(`${source}: ${stray}: has a meaning for stream file alone, not for ${stream}: leave it out`)
  }
  if (drift > 0 && (isFile || dimension < 2)) {
    throw new ScenarioError(
      `${source}: drift: only what is drawn in 2 dimensions or more can turn: give another stream or dimension, or drift=0`
    )
  }
  if (labelNoise > 0 && (stream === 'least-squares' || model === 'linear')) {
    throw new ScenarioError(
      `${source}: labelNoise: numbers are no classes: give noise for least-squares, or labelNoise=0`
    )
  }
}
