/** The properties that hold of every run, as invariants to watch it with. */
import type { CountingInputs } from '../fuzz/counting.js'
import { Lineage, Size } from './batches.js'
import { Acceptance, EdgeMonotone, Idempotence, NoEcho } from './edges.js'
import { ExactlyOnce } from './exact.js'
import { Conservation } from './gradients.js'
import type { Invariants, WatchedRun } from './invariant.js'
import { Identity, Monotone } from './names.js'
import { Progress } from './progress.js'
import { Quiescence } from './quiescence.js'

export type { EdgeSite, Invariant, Invariants, Occurrence, Site, Turn, WatchedRun } from './invariant.js'
export { Violation } from './violation.js'

/** What holds whatever is learned. The paper's precedence by sender lets nodes go back, so it keeps fewer of them. */
export const invariants: Invariants = run => {
  const { scenario, recipe, start } = run
  const { batch, carry } = scenario
  const always = [new Identity(), new Lineage(recipe), new Size(batch), new NoEcho(), new Acceptance()]
  if (scenario.algorithm === 'admb-sender') return always
  const delay = steadyDelay(run)
  // On a cycle sums overlap, and the larger one takes the place of others.
  const isForest = run.faults.every(({ kind }) => kind !== 'link')
  return [
    ...always,
    new Monotone(),
    new Idempotence(),
    new Conservation(carry),
    new Quiescence(),
    ...(isForest ? [new EdgeMonotone(start)] : []),
    ...(delay === undefined ? [] : [new Progress(run, delay)])
  ]
}

/** All of these, and what the exact learner tells. */
export function exactInvariants(inputs: CountingInputs): Invariants {
  return run => [...invariants(run), new ExactlyOnce(inputs, run.scenario.carry)]
}

/**
 * One-way delay in a run in which nothing fails, in ms; undefined if something may. Delays that vary let frames overtake one
 * another: then a predictor may come too late, and is told again only after a wait.
 */
function steadyDelay({ scenario, faults }: WatchedRun): number | undefined {
  const { latency, delay, loss, topology, linkSpread, reorder, bandwidth, speedSpread } = scenario
  const isSteady = delay === 'constant' && linkSpread === 0 && bandwidth === 0 && speedSpread === 0
  const mayFail = faults.length > 0 || loss > 0 || reorder > 0 || topology === 'overlay'
  return isSteady && !mayFail ? latency : undefined
}
