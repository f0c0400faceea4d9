/**
 * The schema of a scenario: everything that a run depends on, as plain data. Every key has a default. Validation errors name
 * the key, the given value and the allowed values.
 */
import * as z from 'zod'
import { CodedError, nearest } from '../src/base/errors.js'
import {
  type AveragingName,
  averagingNames,
  boundsOf,
  conflictOf,
  isDual,
  layerEntries,
  modelNames,
  Privacy,
  parseTrust,
  type RuleSpec,
  ruleNames,
  type SingleRuleSpec
} from '../src/learning/index.js'
import { adversaryKeys } from './adversaries/index.js'
import type { AlgorithmDefinition } from './algorithms/definition.js'
import { type AlgorithmName, algorithmNames, algorithms } from './algorithms/index.js'
import { faultKeys } from './faults/schedule.js'
import { streamNames } from './streams/inputs.js'
import { topologyNames } from './topology.js'

/** A scenario that cannot be run. */
export class ScenarioError extends CodedError {
  static override readonly code = 'ERR_SCENARIO'
}

const DEFAULT_INPUTS = 100_000

const share = z.number().min(0).max(1)
const count = z.int().min(1)
const duration = z.number().positive()

const trustKeys = z.strictObject({
  /** Whether the gradient sum of each ADMB node is bounded, and larger ones are refused. */
  bounded: z.boolean().default(false),
  /**
   * Gradients that an ADMB node contributes in a virtual second at most: others do not use more of it. It may save up those of 100 periods.
   * @default any number
   */
  rate: z.number().positive().optional(),
  /** Number of nodes that must have signed a whole predictor that does not follow from one that an ADMB node holds, or held. */
  signers: z.int().min(0).default(0)
})

/** Why a rule is refused. */
function ruleFault(text: string): string | undefined {
  const entries = layerEntries(text)
  if (entries?.some(({ layers }) => layers === '')) return 'expected LAYERS:NAME;…, with a name, a kind or * for LAYERS'
  const names: readonly string[] = entries ? ruleNames : [...ruleNames, 'theory']
  const unknown = (entries?.map(({ rule }) => rule) ?? [text]).find(name => !names.includes(name))
  return unknown === undefined ? undefined : oneOf(unknown, names)
}

/** The rule of a scenario, unless it is `theory`. */
export function ruleSpecOf({ rule }: Pick<Scenario, 'rule'>): RuleSpec {
  const spec = (name: string) => ({ name }) as SingleRuleSpec
  const entries = layerEntries(rule)
  return entries ? { name: 'layers', rules: entries.map(entry => ({ ...entry, rule: spec(entry.rule) })) } : spec(rule)
}

/** The keys of `members`, or `bounded[,rate=N][,signers=N]`. */
function trustKeysOf(value: unknown, { addIssue }: z.RefinementCtx): unknown {
  if (typeof value !== 'string') return value
  try {
    const bounds = boundsOf(parseTrust(value))
    return bounds && { bounded: true, ...bounds }
  } catch (error) {
    addIssue((error as Error).message)
    return z.NEVER
  }
}

const schema = z.strictObject({
  algorithm: z.enum(algorithmNames).default('admb'),
  topology: z.enum(topologyNames).default('tree'),
  nodes: count.max(1_000_000).default(16),
  /** Maximum number of neighbours of a node. In a `tree` every node has degree − 1 children. */
  degree: z.int().min(2).max(1000).default(3),
  /** On `overlay`: number of other nodes that a node has links to at the start. */
  linkDegree: z.int().min(2).max(1000).default(6),
  /**
   * On `overlay`: number of nodes that the others cannot dial, as tabs of browsers, and that dial only the first `tabHosts` nodes. They
   * are the last nodes.
   */
  tabs: z.int().min(0).max(1000).default(0),
  tabHosts: count.max(1_000_000).default(1),
  /** Whether tabs dial each other, as by WebRTC. */
  tabLinks: z.boolean().default(false),
  /** On `overlay`: virtual ms between heartbeats. All other timers are scaled with it. @default 10 × latency */
  heartbeat: duration.optional(),
  /** Order of the nodes' identities, which decides precedence between predictors. */
  labels: z.enum(['ascending', 'random', 'hub-highest']).default('ascending'),
  /** Whether all nodes start from the same predictor, or each from a different one with one update. */
  starts: z.enum(['common', 'distinct']).default('common'),
  stream: z.enum(streamNames).default('logistic'),
  /** Features per input. */
  dimension: count.max(1_000_000).default(20),
  /** Standard deviation of the noise of `least-squares`. */
  noise: z.number().min(0).default(0.5),
  /** Share of inputs whose class is replaced by another one. */
  labelNoise: share.default(0),
  /** Full rotations of the optimum of a synthetic stream during the run. */
  drift: z.number().min(0).default(0),
  /** For the stream `file`: the options --data, --format, --label, --model, --classes, --scale and --hash-bits of `admb train`. */
  data: z.string().min(1).optional(),
  format: z.string().min(1).optional(),
  label: z.string().min(1).optional(),
  model: z.enum(modelNames).optional(),
  classes: z.int().min(2).optional(),
  scale: z.enum(['none', 'standard']).optional(),
  hashBits: z.int().min(1).max(30).optional(),
  /** Total number of inputs of all nodes. */
  inputs: count.default(DEFAULT_INPUTS),
  /** Virtual milliseconds after the warm-up at which the run ends. @default it ends after `inputs` */
  duration: duration.optional(),
  /** Virtual milliseconds between two inputs of a node. */
  interval: duration.default(1),
  /** Standard deviation of the logarithm of the nodes' input rates; the total rate is constant. */
  speedSpread: z.number().min(0).default(0),
  /** Whether inputs and periods of all nodes are aligned, or each node has a random offset. */
  phases: z.enum(['aligned', 'spread']).default('aligned'),
  /** Virtual milliseconds before the first input, for the overlay to form the tree. */
  warmup: z.number().min(0).default(0),
  /** b: gradients per update. */
  batch: z.int('expected a whole number >=1, or a power of the number of inputs, such as m^0.33').min(1).default(512),
  /** ρ: b is the power ρ of the number of gradients so far, doubled, and at least `batch`. @default b is fixed */
  batchPower: z.number().positive().max(1).optional(),
  /** The nodes of `admb` choose b themselves, from `batch` to this. @default b is fixed */
  batchMax: count.max(1_000_000).optional(),
  /** T in virtual milliseconds. */
  period: duration.default(1),
  /** Whether ADMB nodes send sums less often than each period where that delays updates little. */
  autoPeriod: z.boolean().default(false),
  /** Mean one-way latency in virtual milliseconds. */
  latency: duration.default(1),
  /** Distribution of the latencies. */
  delay: z.enum(['constant', 'uniform', 'exponential', 'log-normal']).default('constant'),
  /** Standard deviation of the logarithm of the links' mean latencies. */
  linkSpread: z.number().min(0).default(0),
  /** Bytes per virtual millisecond in each direction of a link; messages queue. 0: no limit. */
  bandwidth: z.number().min(0).default(0),
  /** Bytes per virtual millisecond that a node sends, and that it receives; messages queue. 0: no limit. */
  nodeBandwidth: z.number().min(0).default(0),
  /** Share of messages that are lost. */
  loss: share.default(0),
  /** Share of messages that arrive twice. */
  duplicate: share.default(0),
  /** Share of messages that are delayed by another three latencies on average, so that later messages overtake them. */
  reorder: share.default(0),
  /** t_u: virtual milliseconds that a node takes for an update. It takes no message meanwhile, and learns from no input. */
  updateTime: z.number().min(0).default(0),
  /** S of ADMB's carry-over, in periods. */
  carry: z.int().min(0).default(16),
  /** ADMB sends whole predictors of at most this many bytes to neighbours without a request. */
  pushBytes: z
    .int()
    .min(0)
    .default(1 << 16),
  /** Virtual milliseconds in which an ADMB node downloads a predictor that a neighbour offers. Without it, the node requests it. */
  downloadTime: z.number().min(0).optional(),
  /** ADMB splits frames whose vectors have more bytes into fragments of about this size. */
  fragmentBytes: z
    .int()
    .min(0)
    .default(1 << 20),
  /** Whether frames of ADMB are as on a network. Without, all edges have one dictionary of contributors, and bytes are not measured. */
  wire: z.boolean().default(true),
  /** ADMB keeps at most this many bytes of integer sums, but at least two sums, for a neighbour as bases of differences. */
  keptBytes: z
    .int()
    .min(0)
    .default(1 << 24),
  /** Periods between two checkpoints of an ADMB node. */
  checkpoint: count.default(8),
  /** Virtual milliseconds until a checkpoint is on the disk, and until records of the journal are, but a period at most. */
  diskTime: z.number().min(0).default(0),
  /** Whether ADMB nodes keep a journal of their segments, and learn unused inputs of earlier runs again. */
  journal: z.boolean().default(false),
  /** Whether ADMB nodes refuse whole predictors that are worse on their inputs than the held one and the starting one. */
  gate: z.boolean().default(false),
  /** Whether ADMB nodes sign the headers of their predictors, as peers do, and verify those of others. */
  signed: z.boolean().default(false),
  /** As `--trust` of peers: `members`, or `bounded[,rate=N][,signers=N]`. In code, an object of these keys. */
  trust: z.preprocess(trustKeysOf, trustKeys.prefault({})),
  /** Gradient sums of ADMB: float32 numbers, or integers on a grid. */
  sums: z.enum(['exact', 'lattice']).default('exact'),
  /** H of ADMB: steps that a node makes of its own while it fills a batch alone; without it, none. */
  localSteps: z.int().min(2).optional(),
  /** Momentum of the updates that average the copies of local steps. */
  localMomentum: z.number().min(0).lt(1).default(0),
  /** Bytes of a node's own sum for each weight and update of local steps. Without it, sums contain all elements that do not round to 0. */
  sumBytes: z.number().positive().max(1).optional(),
  /** Number of nodes with an open page; the nodes report statuses, as peers do. Without it, they report none. */
  watchers: z.int().min(0).optional(),
  /** Number of nodes for each node that compresses its statuses. The sizes of the other statuses are estimated from these. */
  statusSample: count.default(1),
  /** ε, δ and the largest norm of an input's gradient, for differential privacy of the inputs of ADMB nodes. Without them, none. */
  epsilon: z.number().positive().optional(),
  delta: z.number().min(1e-12).lt(1).optional(),
  clip: z.number().positive().optional(),
  /**
   * A rule of `admb train`, or one for each layer of a learner given in code, as `embedding:adagrad;*:adamw`; `theory`: dual averaging with
   * the steps that the theorems prescribe for the stream.
   */
  rule: z
    .string()
    .superRefine((text, { addIssue }) => {
      const fault = ruleFault(text)
      if (fault !== undefined) addIssue(fault)
    })
    .default('dual-averaging'),
  /** What nodes predict with; `paper`: as in the paper of the algorithm. */
  average: z.enum(['paper', ...averagingNames]).default('paper'),
  seed: z.int().min(0).default(1),
  /** Whether the invariants are checked after every event. */
  checks: z.boolean().default(true),
  faults: faultKeys.prefault({}),
  adversaries: adversaryKeys.prefault({})
})

/** A scenario with defaults applied; keys as in scenario files (docs/reference/simulator.md). */
export type Scenario = z.infer<typeof schema>

/** Every key that `--set` accepts, nested ones with a dot. */
export const SCENARIO_KEYS: readonly string[] = Object.keys(schema.shape).flatMap(key =>
  key === 'faults' || key === 'adversaries'
    ? Object.keys({ faults: faultKeys, adversaries: adversaryKeys }[key].shape).map(inner => `${key}.${inner}`)
    : [key]
)

/** The likely name, with all of them. */
export function oneOf(given: string, names: readonly string[], what = 'expected one of'): string {
  const meant = nearest(given, names)
  return meant === undefined ? `${what} ${names.join(', ')}` : `did you mean ${meant}? (${what} ${names.join(', ')})`
}

/**
 * Validates a scenario and applies the defaults.
 * @param source named in errors: the file, or `--set`
 * @example
 * const scenario = parseScenario({ nodes: 8, inputs: 2000 }, 'example')
 * @throws ScenarioError
 */
export function parseScenario(value: unknown, source: string): Scenario {
  const parsed = schema.safeParse(withBatch(withRule(value)))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    if (issue.code === 'unrecognized_keys') {
      const unknown = [...issue.path, issue.keys[0]].join('.')
      throw new ScenarioError(`${source}: unknown key '${unknown}'; ${oneOf(unknown, SCENARIO_KEYS)}`)
    }
    const given = issue.path.reduce<unknown>((parent, name) => (parent as Record<PropertyKey, unknown>)?.[name], value)
    const key = issue.path.length > 0 ? issue.path.join('.') : 'the scenario'
    const shown = given === undefined ? '' : ` (given: ${JSON.stringify(given)})`
    const message = issue.code === 'invalid_value' ? oneOf(String(given), issue.values.map(String)) : issue.message
    throw new ScenarioError(`${source}: ${key}: ${message}${shown}`)
  }
  const scenario = { ...parsed.data, inputs: inputsOf(parsed.data) }
  const { inputs = scenario.inputs } = (value ?? {}) as { readonly inputs?: unknown }
  if (inputs !== scenario.inputs) throw new ScenarioError(`${source}: inputs: not with duration; remove one of them`)
  const problem = conflict(scenario)
  if (problem !== undefined) throw new ScenarioError(`${source}: ${problem}`)
  checkStream(scenario, source)
  return scenario
}

function definitionOf(algorithm: AlgorithmName): AlgorithmDefinition {
  return algorithms[algorithm]
}

/** Algorithms with local steps need a rule that can make them. */
function withRule(value: unknown): unknown {
  const { algorithm } = (value ?? {}) as { algorithm?: AlgorithmName }
  const makesLocalSteps = algorithm !== undefined && definitionOf(algorithm)?.makesLocalSteps
  return makesLocalSteps ? { rule: 'mirror-descent', ...(value as object) } : value
}

/** b as a power of the number of inputs, such as `m^0.33`. */
function withBatch(value: unknown): unknown {
  const { batch, inputs = DEFAULT_INPUTS } = (value ?? {}) as { readonly batch?: unknown; readonly inputs?: unknown }
  const [, power] = (typeof batch === 'string' && /^m\^(0?\.\d+|0|1)$/.exec(batch)) || []
  if (power === undefined || typeof inputs !== 'number') return value
  return { ...(value as object), batch: Math.max(1, Math.round(inputs ** Number(power))) }
}

/** Describes a combination of keys that cannot be simulated, and its fix. */
function conflict(scenario: Scenario): string | undefined {
  const {
    algorithm,
    batch,
    batchMax,
    batchPower,
    autoPeriod,
    localSteps,
    localMomentum,
    sumBytes,
    topology,
    nodes,
    degree,
    tabs,
    tabHosts,
    latency,
    heartbeat
  } = scenario
  const { rule, sums, trust, signed, loss, delay, duplicate, reorder, watchers, tabLinks } = scenario
  const { faults, adversaries } = scenario
  const { partitionShare, partitionTime, partitionMin = 0 } = faults
  const { epsilon, delta, clip, journal, wire, checks, bandwidth, nodeBandwidth } = scenario
  const { makesLocalSteps = false } = definitionOf(algorithm)
  const isDualRule = rule === 'theory' || isDual(ruleSpecOf(scenario))
  const hasMaster = algorithm === 'mawo-overlay' || algorithm === 'dmb-overlay'
  const isPrivate = epsilon !== undefined || delta !== undefined
  const combined = conflictOf(
    {
      peers: algorithm === 'admb' || hasMaster || (clip !== undefined && algorithm.startsWith('admb')),
      masterAlgorithm: hasMaster,
      signedHeaders: signed,
      journal: journal && isPrivate,
      ruleWithoutSteps: isDualRule,
      adaptiveBatch: batchMax !== undefined,
      adaptivePeriod: autoPeriod,
      signers: trust.signers > 0,
      boundedTrust: trust.bounded && (algorithm === 'admb' || hasMaster),
      localSteps: localSteps !== undefined && !makesLocalSteps,
      localMomentum: localMomentum > 0,
      sumBytes: sumBytes !== undefined,
      // Algorithms other than ADMB ignore the kind of sums.
      latticeSums: sums === 'lattice' && sumBytes !== undefined,
      privacy: clip !== undefined,
      adversaries: adversaries.nodes > 0
    },
    true
  )
  if (combined !== undefined) return combined
  if (makesLocalSteps && isDualRule) {
    return `rule: ${algorithm} makes local steps, which dual averaging cannot; set another rule, such as mirror-descent`
  }
  if (localSteps !== undefined && !makesLocalSteps && localSteps > batch)
    return `localSteps: at most a batch, ${batch}; increase batch`
  if (isPrivate && (epsilon === undefined || delta === undefined || clip === undefined)) {
    return 'epsilon: differential privacy needs epsilon, delta and clip; set all of them, or remove epsilon and delta'
  }
  if (batchPower !== undefined && (batchMax !== undefined || definitionOf(algorithm).family === 'field')) {
    return 'batchPower: b grows in the algorithms of the papers, and without batchMax; remove it, or the other key'
  }
  if (batchMax !== undefined && batchMax < batch) {
    return `batchMax: ${batchMax} is less than batch (${batch}), the least b; increase it`
  }
  if (!wire && (checks || signed || bandwidth > 0 || nodeBandwidth > 0 || adversaries.nodes > 0))
    return 'wire: checks, signed headers, bandwidths and hostile nodes need frames as on a network; switch them off (such as checks=false), or remove wire'
  if (adversaries.nodes >= nodes) {
    return `adversaries.nodes: ${adversaries.nodes} of ${nodes} nodes would be hostile; set it to at most ${nodes - 1}`
  }
  if (partitionShare > 0 && nodes < 2) {
    return 'faults.partitionShare: a network of one node cannot be partitioned; set nodes to at least 2'
  }
  if (partitionMin > partitionTime) {
    return `faults.partitionMin: the minimum (${partitionMin}) exceeds the mean; set it to at most faults.partitionTime (${partitionTime})`
  }
  if (topology === 'overlay' && heartbeat !== undefined && 2 * heartbeat <= latency) {
    const reason = 'a reply must arrive within four heartbeats, the timeout of the failure detector'
    return `heartbeat: ${reason}; set it above half the latency (${latency / 2})`
  }
  if (watchers !== undefined && topology !== 'overlay' && (delay !== 'constant' || loss + duplicate + reorder > 0)) {
    return 'watchers: statuses need sessions that keep the order; set topology=overlay, or delay=constant without losses'
  }
  if (tabs > 0 && topology !== 'overlay')
    return 'tabs: only valid for topology overlay; set topology=overlay, or tabs=0'
  if (tabs > 0 && tabs >= degree && !tabLinks) {
    return `tabs: one node has room for ${degree - 1} of them; set tabs to at most ${degree - 1}, tabLinks to true, or increase degree`
  }
  if (tabs > 0 && tabs + tabHosts > nodes) {
    return `tabs: ${tabs} tabs and ${tabHosts} nodes that they dial exceed the ${nodes} nodes; increase nodes`
  }
  if (topology === 'overlay' && loss > 0.9) {
    return `loss: sessions cannot be kept open at a loss of ${loss}; set at most 0.9 with topology overlay`
  }
  return undefined
}

/** Inputs of a scenario; with a duration, the most that can arrive in it. */
function inputsOf({ duration, inputs, nodes, interval }: Scenario): number {
  return duration === undefined ? inputs : nodes + Math.ceil((duration * nodes) / interval)
}

/** Virtual milliseconds at which the inputs of a scenario end. */
export function endOf({ warmup, duration, inputs, nodes, interval }: Scenario): number {
  return warmup + (duration ?? (inputs / nodes) * interval)
}

/** The average that the nodes of a scenario predict with. */
export function averageOf({ algorithm, average }: Pick<Scenario, 'algorithm' | 'average'>): AveragingName {
  return average === 'paper' ? algorithms[algorithm].average : average
}

/** The protection of each input of a node, which is released once; undefined without it. */
export function privacyOf({ epsilon, delta, clip }: Scenario): Privacy | undefined {
  if (epsilon === undefined || delta === undefined || clip === undefined) return undefined
  return new Privacy({ epsilon, delta, clip })
}

const FILE_KEYS = ['data', 'format', 'label', 'model', 'classes', 'scale', 'hashBits'] as const

function checkStream(scenario: Scenario, source: string): void {
  const { stream, dimension, labelNoise, drift, data, model } = scenario
  const isFile = stream === 'file'
  if (isFile && data === undefined) throw new ScenarioError(`${source}: data: missing for stream file; set data=FILE`)
  const unused = FILE_KEYS.find(key => scenario[key] !== undefined)
  if (!isFile && unused !== undefined) {
    throw new ScenarioError(`${source}: ${unused}: only valid for stream file, not for ${stream}; remove it`)
  }
  if (drift > 0 && (isFile || dimension < 2)) {
    throw new ScenarioError(
      `${source}: drift: requires a synthetic stream of dimension 2 or more; change stream or dimension, or set drift=0`
    )
  }
  if (labelNoise > 0 && (stream === 'least-squares' || model === 'linear')) {
    throw new ScenarioError(
      `${source}: labelNoise: requires classes, not numbers; use noise for least-squares, or set labelNoise=0`
    )
  }
}
