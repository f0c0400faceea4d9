/** What the same inputs come to without a network: learned by one learner, and by each of the peers alone. */
import type { Execution } from '../../l2l/index.js'
import type { SerialReport } from '../../learner/index.js'
import { trainerFor } from '../../library/trainer.js'
import type { LearningSpec } from '../../peer/index.js'
import { openStream, type StreamOptions } from '../../streams/index.js'

export interface Result {
  readonly averageLoss: number
  readonly accuracy?: number
}

/** Learns a stream with the same model, rule and batch size as the peers, in this process. */
export async function learnSerially(
  spec: LearningSpec,
  stream: StreamOptions,
  execution: Execution
): Promise<SerialReport> {
  const { trainer } = await trainerFor(spec, execution)
  for await (const examples of await openStream(stream)) trainer.learn(examples)
  const report = trainer.report()
  trainer.finish()
  return report
}

/** Inputs of the whole run. */
export async function rowsOf(stream: StreamOptions): Promise<number> {
  const { passes = 1, maxRows = Number.POSITIVE_INFINITY } = stream
  let rows = 0
  for await (const examples of await openStream({ ...stream, passes: 1 })) rows += examples.size
  return Math.min(rows * passes, maxRows)
}

/** The mean over the inputs of several learners. */
export function pooled(reports: readonly { inputs: number; averageLoss?: number; accuracy?: number }[]): Result {
  const inputs = reports.reduce((sum, report) => sum + report.inputs, 0)
  const mean = (of: (report: (typeof reports)[number]) => number | undefined) =>
    reports.reduce((sum, report) => sum + (of(report) ?? 0) * report.inputs, 0) / Math.max(1, inputs)
  const accuracy = reports.every(report => report.accuracy === undefined) ? undefined : mean(report => report.accuracy)
  return { averageLoss: mean(report => report.averageLoss), accuracy }
}
