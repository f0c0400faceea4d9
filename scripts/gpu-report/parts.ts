/** Runs the parts of a report one after another. Each has a share of the remaining time; a failing part does not affect the others. */
import type { Row } from '../bench/row.js'
import type { PartReport, Status, TestFailure } from './report.js'

export interface Outcome {
  readonly status: Status
  readonly error?: string
  readonly failures?: readonly TestFailure[]
}

export interface Part {
  readonly name: string
  /** Part of the remaining time, relative to the parts that follow. Unused time is available to the parts that follow. */
  readonly share: number
  /** @param emit records a row; it replaces an earlier one with the same name */
  run(limitMs: number, emit: (row: Row) => void): Promise<Outcome>
}

/** @param onEnd is called with the report of each part as it ends */
export async function runParts(
  parts: readonly Part[],
  totalMs: number,
  onEnd: (part: PartReport) => void = () => undefined
): Promise<PartReport[]> {
  const end = performance.now() + totalMs
  const reports: PartReport[] = []
  for (const [at, part] of parts.entries()) {
    const shares = parts.slice(at).reduce((sum, { share }) => sum + share, 0)
    const limitMs = Math.max(0, end - performance.now()) * (part.share / shares)
    const rows = new Map<string, Row>()
    const start = performance.now()
    const outcome = await outcomeOf(part, limitMs, row => rows.set(row.name, row))
    const seconds = (performance.now() - start) / 1000
    const { status, error, failures } = outcome
    const report = {
      name: part.name,
      status,
      seconds,
      limitSeconds: limitMs / 1000,
      error,
      rows: [...rows.values()],
      failures
    }
    reports.push(report)
    onEnd(report)
  }
  return reports
}

async function outcomeOf(part: Part, limitMs: number, emit: (row: Row) => void): Promise<Outcome> {
  try {
    return await part.run(limitMs, emit)
  } catch (error) {
    return { status: 'failed', error: (error as Error).message }
  }
}
