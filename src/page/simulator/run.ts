/** A run of a scenario in the worker, beside one learner with the same inputs. */
import type { ObservedRun } from '../../../sim/options.js'
import { parseScenario, type Scenario } from '../../../sim/scenario.js'
import { simulate } from '../../../sim/simulate.js'
import type { RegretPoint, Report } from './messages.js'
import { FrameRecorder } from './recorder.js'

/** Number of frames of a run, and of points of the serial learner's regret. */
const FRAMES = 300

/** @param post called with each report @throws ScenarioError */
export function runScenario(
  values: Readonly<Record<string, unknown>>,
  source: string,
  post: (report: Report) => void
): void {
  const scenario = parseScenario(values, source)
  post({ kind: 'serial', points: serialRegret(scenario) })
  const { warmup, inputs, nodes, interval } = scenario
  const recorder = new FrameRecorder((warmup + (inputs / nodes) * interval) / FRAMES, post)
  const result = simulate(scenario, { observer: recorder.observer })
  recorder.finish(result.violations[0])
  post({ kind: 'result', result })
}

/** Regret of one learner that receives all inputs, which are those of the scenario's nodes, in the same order. */
function serialRegret(scenario: Scenario): RegretPoint[] {
  const points: RegretPoint[] = [[0, 0]]
  const step = Math.max(1, Math.floor(scenario.inputs / FRAMES))
  let run: ObservedRun | undefined
  const serial: Scenario = { ...scenario, algorithm: 'serial', checks: false }
  simulate(serial, {
    observer: {
      onStart: started => {
        run = started
      },
      onInput: inputs => {
        if (run === undefined || (inputs % step > 0 && inputs < scenario.inputs)) return
        const { loss, bestLoss } = run.losses
        points.push([inputs, loss - bestLoss])
      }
    }
  })
  return points
}
