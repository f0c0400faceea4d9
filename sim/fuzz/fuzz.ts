/**
 * The fuzzer: runs random trials with the exact learner until one violates a property, then shrinks the trial with fast-check.
 * Runs are divided into portions, each with its own seed, so that the result does not depend on the number of threads.
 */
import fc from 'fast-check'
import { Random } from '../engine/random.js'
import type { NodeFactory } from '../learning-node.js'
import type { FixedKeys } from '../testing/scenarios.js'
import { checkExactly, hostileTrials, type Trial, trials } from '../testing/trials.js'

export const RUNS_PER_PORTION = 100

export interface FuzzViolation {
  /** Seed of the fuzzer run that found it. */
  readonly seed: number
  /** `property: detail` of the violation by `schedule`. */
  readonly property: string
  /** The shortest trial found that violates the property. */
  readonly schedule: Trial
}

export interface FuzzReport {
  /** Number of runs, up to the first violation. */
  readonly runs: number
  readonly violations: readonly FuzzViolation[]
}

export interface FuzzOptions {
  /** Keys with the same value in every trial. @default none */
  readonly scenario?: FixedKeys
  /** Creates the nodes. @default AdmbNode */
  readonly node?: NodeFactory
  /** Called with the trial that violates a property, and then with each shorter one that shrinking finds. */
  readonly onViolation?: (trial: Trial, violation: string) => void
  /** Called after every run up to the first failure; shrinking follows that one. */
  readonly onRun?: (hasFailed: boolean) => void
  /** Whether to shrink the failing trial. @default true */
  readonly shrink?: boolean
}

/** Stops at the first violation. */
export function fuzz(runs: number, seed: number, options: FuzzOptions = {}): FuzzReport {
  for (let done = 0, portion = 0; done < runs; done += RUNS_PER_PORTION, portion++) {
    const report = fuzzPortion(portion, Math.min(RUNS_PER_PORTION, runs - done), seed, options)
    if (report.violations.length > 0) return { ...report, runs: done + report.runs }
  }
  return { runs, violations: [] }
}

/** Runs one portion. @param portion index of the portion @param runs at most RUNS_PER_PORTION */
export function fuzzPortion(
  portion: number,
  runs: number,
  seed: number,
  { scenario, node, onRun, onViolation, shrink = true }: FuzzOptions = {}
): FuzzReport {
  let first: string | undefined
  const drawn = fc.oneof({ weight: 5, arbitrary: trials(scenario) }, { weight: 1, arbitrary: hostileTrials(scenario) })
  const property = fc.property(drawn, trial => {
    const violation = checkExactly(trial, { node })
    if (first === undefined) {
      onRun?.(violation !== undefined)
      first = violation && propertyOf(violation)
    }
    // Shrinking must not switch to another property.
    if (violation === undefined || propertyOf(violation) !== first) return
    onViolation?.(trial, violation)
    throw new Error(violation)
  })
  const details = fc.check(property, {
    numRuns: runs,
    seed: new Random(seed, `portion ${portion}`).integer() | 0,
    endOnFailure: !shrink
  })
  if (!details.failed || details.counterexample === null) return { runs, violations: [] }
  const [schedule] = details.counterexample
  const { message } = details.errorInstance as Error
  return { runs: details.numRuns, violations: [{ seed, property: message, schedule }] }
}

/** The name of the property. */
function propertyOf(violation: string): string {
  return violation.slice(0, violation.indexOf(':'))
}
