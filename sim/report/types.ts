/** What a report is made from. */
import type { RunResult, Scenario } from '../index.js'
import type { Timeline } from './timeline.js'

export interface ReportedRun {
  /** What sets this run apart, in words. */
  readonly label: string
  /** The same as data: keys of the scenario. */
  readonly varied: Readonly<Record<string, string | number | boolean>>
  readonly scenario: Scenario
  readonly result: RunResult
  /** Who held which predictor when, if the run was watched and its algorithm names predictors. */
  readonly timeline?: Timeline
}

export interface Report {
  readonly title: string
  /** A sentence on what the runs are to show. */
  readonly about?: string
  /** The command that gives this report again. */
  readonly command: string
  readonly runs: readonly ReportedRun[]
}
