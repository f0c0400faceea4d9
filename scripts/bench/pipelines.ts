/**
 * Pipelines of two devices on the same transformer, compared with one device and with data parallelism: time, bubble and memory, expected
 * and measured. Of each, the fastest of several steps in turns, because the machine may be shared.
 */
import { openDevice } from '../../src/device/index.js'
import { DenseRows } from '../../src/l2l/dense-rows.js'
import { networkModel } from '../../src/l2l/execution.js'
import { Executor } from '../../src/l2l/executor/executor.js'
import {
  BlockStore,
  dividesModel,
  type Execution,
  isPipeline,
  SCHEDULES,
  type Schedule
} from '../../src/l2l/executor/types.js'
import { layerMs } from '../../src/l2l/planning/pipeline.js'
import { fastestPlan, planRequest, stagesOf } from '../../src/l2l/planning/planner.js'
import { type DeviceProfile, profileModel } from '../../src/l2l/planning/profile.js'
import type { Plan } from '../../src/l2l/planning/types.js'
import { DevicePool } from '../../src/l2l/workers/pool.js'
import { zeros } from '../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../src/nn/blocks.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../src/nn/spec/network-spec.js'
import type { Model } from '../../src/nn/types.js'
import { tokens } from './l2l.js'
import type { Row } from './row.js'
import { threadTimes } from './thread-times.js'

const SHAPE = { width: 64, length: 64, batch: 32, microbatch: 4 }
const WORKERS = 2
/** Device memory in which no stage keeps its layers, in bytes. */
const TIGHT = 3_000_000

interface Measured {
  readonly ms: number
  readonly cpuMs: number
  /** CPU time of the thread that takes the most: the time of a step if each device had a core of its own and never waited. */
  readonly threadMs: number
  readonly bubble: number
  readonly deviceBytes: number
}

export function bench(): AsyncGenerator<Row> {
  return compareGroups(SHAPE, SCHEDULES.filter(isPipeline), 80)
}

/** @param schedules that divide the model */
export async function* compareGroups(
  shape: typeof SHAPE,
  schedules: readonly Schedule[],
  rounds: number
): AsyncGenerator<Row> {
  const network = networkOf(shape, 4)
  const { name: backend } = await openDevice('auto')
  const model = networkModel(network)
  // The fastest of several profiles, for the same reason.
  const profiles = Array.from({ length: 5 }, () => profileModel(model))
  const [profile] = profiles.sort((a, b) => sumOf(layerMs(a)) - sumOf(layerMs(b)))
  const { batch, microbatch } = shape
  const variants: Execution[] = [
    { schedule: 'baseline-ag', microbatch },
    { schedule: 'baseline-ag', microbatch, workers: WORKERS },
    { schedule: 'l2l-p', microbatch, workers: WORKERS },
    ...schedules.map(schedule => ({ schedule, microbatch, workers: WORKERS })),
    // Layers are loaded for each operation.
    ...schedules.filter(isPipeline).flatMap(schedule => [
      { schedule, microbatch, workers: WORKERS, stash: 'host' as const },
      { schedule, microbatch, workers: WORKERS, deviceMemory: TIGHT }
    ])
  ]
  const rows = rowsOf(model, shape)
  const plans = variants.map(variant => fastestPlan(planRequest(model, profile, variant, batch)))
  const runs = await Promise.all(variants.map(({ workers }, i) => open(network, plans[i], profile, workers)))
  for (let round = 0; round < rounds; round++) {
    for (const run of runs) {
      const measured = step(run, rows)
      // The first steps compile.
      if (round > 1) run.steps.push(measured)
    }
  }
  for (const [i, { pool, steps }] of runs.entries()) {
    const own = steps.map(({ deviceBytes }) => deviceBytes)
    const { schedule, workers = 1 } = variants[i]
    const plan = plans[i]
    const fastest = steps.reduce((best, each) => (each.ms < best.ms ? each : best))
    const details = {
      backend,
      workers,
      expectedMs: plan.stepMs,
      cpuMs: Math.min(...steps.map(({ cpuMs }) => cpuMs)),
      threadMs: Math.min(...steps.map(({ threadMs }) => threadMs)),
      ...(dividesModel(plan.schedule) && {
        bubble: 100 * fastest.bubble,
        minBubble: 100 * Math.min(...steps.map(({ bubble }) => bubble))
      }),
      ...(plan.pipeline && {
        expectedBubble: 100 * plan.pipeline.bubble,
        closedForm: 100 * plan.pipeline.closedForm,
        group: plan.pipeline.group
      }),
      deviceBytes: Math.max(...own, ...(pool.report() ?? []).map(({ peakBytes = 0 }) => peakBytes)),
      expectedBytes: plan.deviceBytes
    }
    yield {
      name: `${schedule}, ${workers} devices${loadedOf(plan)}`,
      value: fastest.ms,
      unit: 'ms',
      details
    }
    pool.close()
  }
}

function loadedOf({ stash, layers }: Plan): string {
  if (stash === 'device') return ''
  const offloaded = layers.filter(({ activations }) => activations === 'host').length
  return `, layers loaded, activations of ${offloaded} on the host`
}

export function networkOf({ width, length }: Pick<typeof SHAPE, 'width' | 'length'>, layers: number): NetworkSpec {
  return {
    layers: parseModel({ model: 'gpt', width, layers, heads: 4 }, 'bench'),
    sample: { kind: 'tokens', shape: [length], vocabulary: 64 },
    target: { kind: 'next-token' }
  }
}

/** A minibatch. */
export function rowsOf(model: Model, shape: typeof SHAPE): DenseRows {
  const examples = tokens(shape, shape.batch)
  const rows = new DenseRows(model)
  for (let row = 0; row < shape.batch; row++) rows.append(examples, row)
  return rows
}

export async function open(network: NetworkSpec, plan: Plan, profile: DeviceProfile, workers?: number) {
  const model = networkModel(network)
  const { schedule, microbatch, stash, layers } = plan
  const executorOptions = { schedule, microbatch, stash, layers, pipeline: stagesOf(plan, profile, workers) }
  const blocks = initialBlocks(model, 1).map(block => {
    const shared = new Float32Array(new SharedArrayBuffer(block.byteLength))
    shared.set(block)
    return shared
  })
  const pool = await DevicePool.open({
    network,
    backend: 'wasm',
    executorOptions,
    weights: { blocks },
    workers: workers ?? 1
  })
  const store = new BlockStore(model, blocks, zeros(layoutOf(model)))
  const steps: Measured[] = []
  return { pool, store, executor: new Executor(model, executorOptions), steps }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

function step({ pool, store, executor }: Awaited<ReturnType<typeof open>>, rows: DenseRows): Measured {
  const { meter } = executor
  meter.resetPeak()
  const before = meter.bytes
  const [start, cpu, threads] = [performance.now(), process.cpuUsage(), threadTimes()]
  pool.train(executor, store, rows)
  const ms = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  const threadMs = 1000 * Math.max(...[...threadTimes()].map(([id, seconds]) => seconds - (threads.get(id) ?? 0)))
  return {
    ms,
    cpuMs: (user + system) / 1000,
    threadMs,
    bubble: pool.bubble ?? 0,
    deviceBytes: meter.peakBytes - before
  }
}
