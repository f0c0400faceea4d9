/** A step on the way to a peer, and what it is to fail at one. */

export type StepName = 'name' | 'route' | 'port' | 'network key' | 'noise' | 'allow-list' | 'protocol' | 'model'

export interface Step {
  readonly name: StepName
  readonly ok: boolean
  readonly detail: string
  /** What to do about a step that failed. */
  readonly remedy?: string
}

/** Notes a step that is fine; the first word on each counts. */
export type Pass = (name: StepName, detail: string) => void

export class StepFailedError extends Error {
  constructor(
    readonly step: StepName,
    message: string,
    readonly remedy: string
  ) {
    super(message)
  }
}
