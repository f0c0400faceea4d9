/**
 * Pipelines of two, three and four stages, also on a machine with fewer cores: the CPU time of each stage's thread is measured, and the
 * planner's timeline with these times gives the step on as many cores, and over lines. Steps of all variants take turns; of each thread
 * the minimum counts, because the machine may be shared.
 */
import { openDevice } from '../../src/device/index.js'
import { networkModel } from '../../src/l2l/execution.js'
import { isPipeline, SCHEDULES } from '../../src/l2l/executor/types.js'
import { pipelineTimeline } from '../../src/l2l/planning/pipeline.js'
import { fastestPlan, planRequest } from '../../src/l2l/planning/planner.js'
import { profileModel } from '../../src/l2l/planning/profile.js'
import type { GroupDevice, Plan } from '../../src/l2l/planning/types.js'
import { networkOf, open, rowsOf } from './pipelines.js'
import type { Row } from './row.js'
import { threadTimes } from './thread-times.js'

const SHAPE = { width: 64, length: 64, batch: 32, microbatch: 2 }
/** Blocks of two layers each, so that four stages can be almost equal. */
const LAYERS = 8
const WORKERS = [2, 3, 4]
const ROUNDS = 12
/** 1 Gbit/s. */
const LINE = 125_000

interface Variant {
  readonly name: string
  readonly workers: number
  readonly plan: Plan
  readonly run: Awaited<ReturnType<typeof open>>
  /** Numbers of the threads of the stages, this one's last. */
  readonly threads: readonly number[]
  /** Least CPU time of each stage in a step, in ms. */
  readonly least: number[]
}

export async function* bench(): AsyncGenerator<Row> {
  await openDevice('auto')
  const network = networkOf(SHAPE, LAYERS)
  const model = networkModel(network)
  const profile = profileModel(model)
  const { batch, microbatch } = SHAPE
  const rows = rowsOf(model, SHAPE)
  const requestOf = (schedule: Plan['schedule'], devices: readonly GroupDevice[]) =>
    planRequest(model, profile, { schedule, microbatch }, batch, devices)
  const equal = (workers: number) => Array.from({ length: workers }, (): GroupDevice => ({ speed: 1 }))
  const variants: Variant[] = []
  const add = async (schedule: Plan['schedule'], workers: number) => {
    const plan = fastestPlan(requestOf(schedule, equal(workers)))
    const before = threadTimes()
    const run = await open(network, plan, profile, workers)
    // Threads of workers start in the order of the stages.
    const started = [...threadTimes().keys()].filter(id => !before.has(id)).sort((a, b) => a - b)
    const threads = [...started.slice(0, workers - 1), process.pid]
    variants.push({ name: schedule, workers, plan, run, threads, least: threads.map(() => Number.POSITIVE_INFINITY) })
  }
  await add('baseline-ag', 1)
  for (const workers of WORKERS) for (const kind of SCHEDULES.filter(isPipeline)) await add(kind, workers)
  for (let round = 0; round < ROUNDS; round++) {
    for (const { run, threads, least } of variants) {
      const before = threadTimes()
      run.pool.train(run.executor, run.store, rows)
      const after = threadTimes()
      // The first steps compile.
      if (round < 2) continue
      for (const [stage, id] of threads.entries()) {
        least[stage] = Math.min(least[stage], 1000 * ((after.get(id) ?? 0) - (before.get(id) ?? 0)))
      }
    }
  }
  const [alone, ...pipelines] = variants
  yield { name: 'baseline-ag, 1 device', value: alone.least[0], unit: 'ms' }
  for (const { name, workers, plan, run, least } of pipelines) {
    const { schedule, pipeline } = plan
    if (!isPipeline(schedule) || pipeline === undefined) continue
    const [own, ...others] = plan.devices ?? []
    const expected = [...others, own].map(({ computeMs }) => computeMs)
    const measured = expected.map((ms, stage): GroupDevice => ({ speed: ms / least[stage] }))
    // This thread's device is the first one of a group, and the last stage.
    const devices = [measured[workers - 1], ...measured.slice(0, -1)]
    const timeline = (group: readonly GroupDevice[]) =>
      pipelineTimeline(requestOf(schedule, group), { ...plan, schedule, pipeline })
    const { ms, bubble } = timeline(devices)
    const lines = timeline(devices.map((device, d) => (d === 0 ? device : { ...device, lineBytesPerMs: LINE })))
    yield {
      name: `${name}, ${workers} devices`,
      value: alone.least[0] / ms,
      unit: 'times as fast',
      details: {
        stepMs: ms,
        expected: fastestPlan(requestOf('baseline-ag', equal(1))).stepMs / plan.stepMs,
        cpuMs: least.reduce((sum, each) => sum + each, 0),
        stages: least.map(Math.round),
        bubble: 100 * bubble,
        expectedBubble: 100 * pipeline.bubble,
        closedForm: 100 * pipeline.closedForm,
        overLines: alone.least[0] / lines.ms,
        chunks: pipeline.cut.length
      }
    }
    run.pool.close()
  }
  alone.run.pool.close()
}
