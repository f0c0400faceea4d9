/** The properties of ADMB, as invariants to check during a run. */

import { type MasterAlgorithm, quotaOf } from '../../src/admb/index.js'
import { AdaptiveBatch } from '../../src/learning/index.js'
import { appendTime } from '../faults/disk.js'
import type { Fault } from '../faults/schedule.js'
import type { Scenario } from '../scenario.js'
import { GradientAccounts } from './accounts.js'
import { BatchChoice, Conservation, Lineage, Memory, Rounded, Size, Storable } from './batches.js'
import { Acceptance, Economy, EdgeMonotone, Idempotence, NoEcho, Withholding } from './edges.js'
import { Books, Completeness, type CountingInputs, ExactlyOnce, Noised, SparseBooks, UNLIMITED_CARRY } from './exact.js'
import { Gated, Identity, Monotone } from './identity.js'
import type { CheckedRun, Invariants } from './invariant.js'
import { droppedOf, OnlyMaster, Shares } from './master.js'
import { Progress, Prompt, Quiescence, Waiting } from './progress.js'
import { Attribution, Authentic, BoundedInfluence, Contributors, Jumps, Quotas } from './trust.js'

export { Violation } from '../result.js'
export type {
  CheckedEdge,
  CheckedNode,
  CheckedRun,
  HostileNodes,
  Invariant,
  Invariants,
  NodeEvent,
  PredictorChange
} from './invariant.js'

/**
 * Properties that hold for every learner. Precedence by sender lets nodes return to a predictor, so it has fewer of them. Where
 * there are hostile nodes, only those of the others are checked, as far as no other node can violate them.
 */
export const invariants: Invariants = run => {
  const { scenario, recipe, start, adaptiveBatch, influence } = run
  const { batch, carry, trust } = scenario
  if (!runsNodes(scenario)) return droppedOf(run)
  const algorithm = masterAlgorithmOf(scenario)
  const size = new Size(adaptiveBatch ?? batch, trust.rate !== undefined, algorithm)
  const acceptance = new Acceptance(node => run.adversaries.isHostile(node))
  // What holds whatever other nodes do.
  const own = [
    new Lineage(recipe),
    size,
    new NoEcho(),
    acceptance,
    new Withholding(),
    new Storable(start),
    new Gated(),
    ...(algorithm ? [new OnlyMaster()] : []),
    ...(scenario.signed
      ? [new Authentic(), new Attribution(), new Contributors(run.adversaries, influence !== undefined)]
      : []),
    ...(trust.signers > 0 ? [new Jumps(trust.signers, run.adversaries)] : []),
    ...(influence === undefined ? [] : [new BoundedInfluence(influence, recipe)]),
    ...(trust.rate === undefined ? [] : [new Quotas(quotaOf(trust.rate, scenario.period))])
  ]
  if (run.adversaries.count > 0) return [...own, new Monotone(), new Conservation(carry), new Memory(scenario, start)]
  const always = [...own, new Identity(), ...(recipe.rounded ? [new Rounded(recipe.rounded)] : [])]
  if (scenario.algorithm === 'admb-sender') return always
  const delay = constantDelay(run)
  // On a cycle sums overlap, and a larger sum replaces others.
  const isForest = run.faults.every(({ kind }) => kind !== 'link')
  const accounts = new GradientAccounts(mayHideUse(run))
  const isSteady = delay !== undefined && algorithm === undefined
  return [
    ...always,
    ...(adaptiveBatch instanceof AdaptiveBatch ? [new BatchChoice(adaptiveBatch)] : []),
    new Monotone(),
    new Idempotence(),
    new Conservation(carry),
    accounts,
    ...(algorithm === 'dmb' ? [new Shares(batch, accounts)] : []),
    new Memory(scenario, start),
    new Quiescence(trust.rate !== undefined, algorithm),
    new Waiting(),
    ...(isForest ? [new EdgeMonotone(start)] : []),
    ...(isSteady && mayProgress(run) ? [new Progress(run, delay)] : []),
    ...(isSteady && run.faults.length === 0 ? [new Economy(), new Prompt((2 * delay) / scenario.period)] : [])
  ]
}

/** These properties, and those that only the exact learner can check. */
export function exactInvariants(inputs: CountingInputs): Invariants {
  return run => {
    if (run.adversaries.count > 0) return invariants(run)
    const { journal, carry } = run.scenario
    const isLossless = journal && run.faults.every(fault => !losesDisk(fault))
    const isCalm = run.faults.every(fault => !['crash', 'restart', 'leave'].includes(fault.kind))
    const isExact = runsNodes(run.scenario) && run.scenario.algorithm !== 'admb-sender'
    const keepsBooks = isCalm && carry >= UNLIMITED_CARRY && isExact
    if (run.budget) {
      // What is kept back does not count as a use. A jump may hide from a node what its lineage has used.
      const isKnown = isExact && (isCalm || isLossless) && run.scenario.trust.signers === 0
      return [...invariants(run), ...(isKnown ? [new SparseBooks(inputs, run)] : [])]
    }
    return [
      ...invariants(run),
      new ExactlyOnce(inputs, carry, run.recipe),
      new Noised(run.recipe),
      ...(keepsBooks ? [new Books()] : []),
      ...(isLossless && isExact ? [new Completeness(inputs)] : [])
    ]
  }
}

/** DMB or MaWo-DMB, if the nodes of ADMB run it. */
function masterAlgorithmOf({ algorithm }: Scenario): MasterAlgorithm | undefined {
  return (['mawo', 'dmb'] as const).find(name => algorithm === `${name}-overlay`)
}

/** Whether the algorithm has nodes of ADMB. */
function runsNodes(scenario: Scenario): boolean {
  return scenario.algorithm.startsWith('admb') || masterAlgorithmOf(scenario) !== undefined
}

/** Whether a node may not learn which of its gradients a lineage has used: after a crash, or when a jump comes without its headers. */
function mayHideUse({ scenario, faults }: CheckedRun): boolean {
  const isCalm = faults.every(({ kind }) => !['crash', 'restart', 'leave'].includes(kind))
  return !isCalm || scenario.trust.signers > 0
}

/** Whether faults only delay predictors, and these are sent without a request: sessions are at both ends, and no node refuses a predictor. */
function mayProgress({ scenario, faults }: CheckedRun): boolean {
  const { pushBytes, gate, trust } = scenario
  const isWhole = faults.every(({ kind }) => kind !== 'link' && kind !== 'unlink')
  return pushBytes > 0 && (faults.length === 0 || (isWhole && !gate && trust.signers === 0 && trust.rate === undefined))
}

function losesDisk(fault: Fault): boolean {
  return fault.kind === 'leave' || (fault.kind === 'restart' && fault.disk !== 'kept')
}

/** Writes of the journal for which a predictor waits: two for the frame before it on the edge, and two for its own. */
const WRITES = 4

/**
 * One-way delay in ms in a run without losses and with a constant delay, from a node that has something to send; undefined for other runs. With varying delays frames
 * overtake one another: a predictor may then arrive too late and is sent again only after a backoff.
 */
function constantDelay({ scenario }: CheckedRun): number | undefined {
  const {
    latency,
    delay,
    loss,
    topology,
    linkSpread,
    reorder,
    bandwidth,
    nodeBandwidth,
    speedSpread,
    journal,
    updateTime
  } = scenario
  const isConstant =
    delay === 'constant' && linkSpread === 0 && bandwidth + nodeBandwidth + updateTime === 0 && speedSpread === 0
  const mayFail = loss > 0 || reorder > 0 || topology === 'overlay'
  return isConstant && !mayFail ? latency + (journal ? WRITES * appendTime(scenario) : 0) : undefined
}
