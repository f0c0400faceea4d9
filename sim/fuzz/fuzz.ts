/**
 * Random trials, with the exact learner, until one violates a property; then the shortest trial that violates it, by
 * fast-check's shrinking. Runs come in portions, each with a seed of its own, so that threads can share them out and
 * find the same.
 */
import fc from 'fast-check'
import { Random } from '../engine/random.js'
import { type Trial, trials } from '../testing/trials.js'
import { checkExactly } from './check.js'

/** Runs of a portion. */
export const PORTION = 100

export interface Found {
  /** Seed of the fuzzing that found it. */
  readonly seed: number
  /** `property: what happened`, of the schedule below. */
  readonly property: string
  /** The shortest trial that shows it. */
  readonly schedule: Trial
}

export interface FuzzReport {
  /** Runs up to the first violation, or all. */
  readonly runs: number
  readonly violations: readonly Found[]
}

export interface FuzzOptions {
  /** Called after every run up to the first that fails: shrinking may follow that one. */
  readonly onRun?: (hasFailed: boolean) => void
  /** Whether to look for the shortest trial. Default: true. */
  readonly shrink?: boolean
}

/** @returns after the first violation, or when all runs are done */
export function fuzz(runs: number, seed: number, options: FuzzOptions = {}): FuzzReport {
  for (let done = 0, portion = 0; done < runs; done += PORTION, portion++) {
    const report = fuzzPortion(portion, Math.min(PORTION, runs - done), seed, options)
    if (report.violations.length > 0) return { ...report, runs: done + report.runs }
  }
  return { runs, violations: [] }
}

/** Runs of the portion of that number, of at most PORTION. */
export function fuzzPortion(
  portion: number,
  runs: number,
  seed: number,
  { onRun, shrink = true }: FuzzOptions = {}
): FuzzReport {
  let first: string | undefined
  const property = fc.property(trials(), trial => {
    const violation = checkExactly(trial)
    if (first === undefined) {
      onRun?.(violation !== undefined)
      first = violation && familyOf(violation)
    }
    // Shrinking must not slip from one property to another.
    if (violation !== undefined && familyOf(violation) === first) throw new Error(violation)
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

/** The property's name. */
function familyOf(violation: string): string {
  return violation.slice(0, violation.indexOf(':'))
}
