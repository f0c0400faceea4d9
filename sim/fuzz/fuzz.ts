/**
 * The fuzzer: runs random trials with the exact learner until one violates a property, then shrinks the trial with fast-check.
 * Runs are divided into portions, each with its own seed, so that the result does not depend on the number of threads.
 */
import fc from 'fast-check'
import { AdmbNode, formatId } from '../../src/admb/index.js'
import { Random } from '../engine/random.js'
import { checkExactly, type FixedKeys, fuzzTrials, type Trial } from '../testing/trials.js'
import type { LearningNode, NodeFactory } from '../world.js'

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

interface FuzzOptions {
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
  const property = fc.property(fuzzTrials(scenario), trial => {
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

/** Replays a trial and records every event with the nodes that it changed. */
export interface Step {
  /** Virtual milliseconds. */
  readonly time: number
  /** Description of the event. */
  readonly what: string
  /** New states of the nodes that the event changed. */
  readonly changed: NodeState[]
}

export interface NodeState {
  readonly node: number
  /** Identity of the node, which decides precedence. */
  readonly label: string
  /** Id of its current predictor. */
  readonly holds: string
  /** Own gradients at this predictor. */
  readonly own: number
  /** Gradients held from neighbours, by node. */
  readonly from: readonly { readonly node: number; readonly count: number }[]
  /** All usable gradients; the node updates at b. */
  readonly total: number
}

export interface Replay {
  readonly steps: readonly Step[]
  /** `property: detail`; undefined if the trial violates no property. */
  readonly violation: string | undefined
}

export function replay(trial: Trial): Replay {
  const nodes: { readonly label: string; readonly node: LearningNode }[] = []
  const before: string[] = []
  const steps: Step[] = []
  /** Adds the changes by the last event, at the next event or at the end, since a violation skips `afterEvent`. */
  const recordChanges = () => {
    const { changed } = steps[steps.length - 1] ?? { changed: [] }
    nodes.forEach(({ label, node }, index) => {
      const state = stateOf(index, label, node, nodes.length)
      const text = JSON.stringify(state)
      if (text !== before[index]) changed.push(state)
      before[index] = text
    })
  }
  const violation = checkExactly(trial, {
    node: (options, index) => {
      const node = new AdmbNode(options)
      nodes[index] = { label: options.self, node }
      return node
    },
    observer: {
      beforeEvent(time, describe) {
        recordChanges()
        steps.push({ time, what: describe(), changed: [] })
      }
    }
  })
  recordChanges()
  return { steps, violation }
}

function stateOf(index: number, label: string, node: LearningNode, nodes: number): NodeState {
  const from = []
  for (let other = 0; other < nodes; other++) {
    const count = node.inspect.neighbourSum(other)?.count ?? 0
    if (count > 0) from.push({ node: other, count })
  }
  const { predictor, ownGradients, gradients } = node
  return { node: index, label, holds: formatId(predictor.id), own: ownGradients, from, total: gradients }
}
