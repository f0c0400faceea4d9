/** Training on the demo's data without a network: by one learner, and by each peer's learner in isolation. */
import { setImmediate as giveWay } from 'node:timers/promises'
import { openStream, type StreamOptions } from '../../data/index.js'
import type { Execution } from '../../l2l/index.js'
import type { SerialReport } from '../../learning/index.js'
import type { LearningSpec } from '../../peer/index.js'
import { trainerFor } from '../../task/trainer.js'
import type { Reference } from '../../view/index.js'
import { PEERS } from './stage.js'

export interface Result {
  readonly averageLoss: number
  readonly accuracy?: number
}

/** Results without a network. */
export interface Comparison {
  readonly serial: Result
  readonly isolated: Result
  /** Their progressive losses, for the page. */
  readonly references: readonly Reference[]
}

/** Trains one learner on every input, and one learner per peer on that peer's inputs. */
export async function compare(spec: LearningSpec, stream: StreamOptions, execution: Execution): Promise<Comparison> {
  const serial = await learnSerially(spec, stream, execution)
  const alone: Run[] = []
  for (let place = 0; place < PEERS; place++) {
    const maxRows = stream.maxRows === undefined ? undefined : Math.ceil(stream.maxRows / PEERS)
    alone.push(await learnSerially(spec, { ...stream, maxRows, shard: { index: place, count: PEERS } }, execution))
  }
  const shortest = alone.reduce((a, b) => (b.curve.length < a.curve.length ? b : a))
  const together = shortest.curve.map(([inputs], place) => {
    const sum = alone.reduce((total, { curve }) => total + curve[place][1], 0)
    return [inputs, sum / alone.length] as const
  })
  return {
    serial: pooled([serial.report]),
    isolated: pooled(alone.map(({ report }) => report)),
    references: [
      // The page's axis is a peer's inputs, a fifth of the network's.
      {
        name: 'serial',
        points: thinned(serial.curve).map(([inputs, loss]) => [Math.round(inputs / PEERS), loss] as const)
      },
      { name: 'isolated', points: thinned(together) }
    ]
  }
}

interface Run {
  readonly report: SerialReport
  readonly curve: readonly (readonly [inputs: number, loss: number])[]
}

/** Trains with the peers' model, rule and batch size in this process, and yields to the event loop in between. */
async function learnSerially(spec: LearningSpec, stream: StreamOptions, execution: Execution): Promise<Run> {
  const { trainer } = await trainerFor(spec, execution)
  const curve: [number, number][] = []
  for await (const examples of await openStream(stream)) {
    trainer.learn(examples)
    const { inputs, averageLoss } = trainer.report()
    if (averageLoss !== undefined) curve.push([inputs, averageLoss])
    await giveWay()
  }
  const report = trainer.report()
  trainer.finish()
  return { report, curve }
}

/** Maximum number of points of a curve. They are denser at the start, because the axis is logarithmic. */
const POINTS = 120

function thinned(curve: Run['curve']): Run['curve'] {
  const [least, most] = [curve[0]?.[0] ?? 1, curve.at(-1)?.[0] ?? 1]
  let due = least
  return curve.filter(([inputs], place) => {
    if (inputs < due && place < curve.length - 1) return false
    due = inputs * (most / least) ** (1 / POINTS)
    return true
  })
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
