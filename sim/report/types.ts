/** The data of a report. */
import type { RunResult, Scenario } from '../index.js'
import type { Timeline } from './timeline.js'

export interface ReportedRun {
  /** Name of the run in plots and tables. */
  readonly label: string
  /** The varied keys of the scenario. */
  readonly varied: Readonly<Record<string, string | number | boolean>>
  readonly scenario: Scenario
  readonly result: RunResult
  /** Timeline of the predictors, if it was recorded and the algorithm identifies predictors. */
  readonly timeline?: Timeline
}

export interface Report {
  readonly title: string
  /** A sentence on the purpose of the runs. */
  readonly about?: string
  /** The command that reproduces this report. */
  readonly command: string
  readonly runs: readonly ReportedRun[]
}
