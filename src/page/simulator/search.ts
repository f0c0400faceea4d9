/** The search, in the worker, for a violation by ADMB without one of its repairs. */
import { fuzz } from '../../../sim/fuzz/fuzz.js'
import { type RepairName, repairs } from '../../../sim/fuzz/repairs.js'
import { checkExactly, type Trial } from '../../../sim/testing/trials.js'
import type { Report } from './messages.js'
import { FrameRecorder } from './recorder.js'

/** Trials of a search. */
const MAX_RUNS = 3000

/** @param post called with each report */
export function searchViolation(name: RepairName, seed: number, post: (report: Report) => void): void {
  const { without: node, scenario } = repairs[name]
  let runs = 0
  const { violations } = fuzz(MAX_RUNS, seed, {
    node,
    scenario,
    onRun: () => post({ kind: 'tried', runs: ++runs }),
    onViolation: (trial, violation) => post({ kind: 'violation', found: { ...sizeOf(trial), violation } })
  })
  const found = violations.at(0)
  if (found !== undefined) {
    const recorder = new FrameRecorder(0, post)
    checkExactly(found.schedule, { node, observer: recorder.observer })
    recorder.finish(`violation of ${found.property}`)
  }
  post({ kind: 'searched', violation: found?.property })
}

function sizeOf({ scenario, faults }: Trial) {
  return { nodes: scenario.nodes, inputs: scenario.inputs, faults: faults.length }
}
