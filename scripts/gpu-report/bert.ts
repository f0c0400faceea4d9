/** Steps of a model shaped like BERT-large under one schedule, or as the planner chooses. */
import { openedDevice } from '../../src/device/index.js'
import { Executor } from '../../src/l2l/executor/executor.js'
import { BlockStore, type ExecutorOptions } from '../../src/l2l/executor/types.js'
import { planFor } from '../../src/l2l/planning/planner.js'
import { profileModel } from '../../src/l2l/planning/profile.js'
import { L2LEngine } from '../../src/l2l/training/engine.js'
import { zeros } from '../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../src/nn/blocks.js'
import type { Model } from '../../src/nn/types.js'
import { median, type Row } from '../bench/row.js'
import { bertModel, randomBatch, randomExamples, shapeOf } from './bert-model.js'
import { type Counts, countCalls } from './counters.js'
import type { Size } from './options.js'

export const BERT_WAYS = ['baseline', 'l2l', 'l2l-p', 'l2l-p with host stash', 'planned'] as const
export type BertWay = (typeof BERT_WAYS)[number]

/** The planner's choices: the microbatch for `l2l-p`, and a complete plan. */
export interface Plans {
  readonly microbatch: number
  readonly planned: ExecutorOptions
}

const MOST_STEPS = 10
/** Steps after the first, which compiles, must start within this share of the time. */
const STEP_SHARE = 0.7

export function makePlans(size: Size): Plans {
  const shape = shapeOf(size)
  const model = bertModel(shape)
  const profile = profileModel(model)
  const { microbatch } = planFor(model, profile, { schedule: 'l2l-p' }, shape.batch)
  const { schedule, stash, layers, ...plan } = planFor(model, profile, { schedule: 'auto' }, shape.batch)
  const isWhole = schedule === 'baseline'
  return {
    microbatch,
    planned: { schedule, stash, layers, microbatch: isWhole ? undefined : plan.microbatch }
  }
}

export function* plans(size: Size): Generator<Row> {
  const { microbatch, planned } = makePlans(size)
  yield { name: 'microbatch for l2l-p', value: microbatch, unit: 'samples' }
  const { schedule = 'l2l', stash = 'device', layers = [] } = planned
  const details = { schedule, stash, layers: JSON.stringify(layers) }
  yield { name: 'microbatch planned', value: planned.microbatch ?? 0, unit: 'samples', details }
}

/** Steps of one minibatch, forward and backward, without an optimizer. */
export function* bert(size: Size, way: BertWay, plan: Plans, limitMs: number): Generator<Row> {
  const end = performance.now() + STEP_SHARE * limitMs
  const shape = shapeOf(size)
  const model = bertModel(shape)
  const store = new BlockStore(model, initialBlocks(model, 1), zeros(layoutOf(model)))
  const batch = randomBatch(model, shape)
  const options = optionsOf(way, plan)
  const executor = new Executor(model, options)
  const counts = countCalls()
  const before = executor.meter.bytes
  executor.meter.resetPeak()
  const steps: number[] = []
  for (let step = 0; step <= MOST_STEPS && (step < 2 || performance.now() < end); step++) {
    const start = performance.now()
    const { loss } = executor.train(store, batch)
    steps.push(performance.now() - start)
    yield stepRow(`${way}: forward and backward`, shape.batch, steps, {
      microbatch: options.microbatch ?? shape.batch,
      peakDeviceBytes: executor.meter.peakBytes - before,
      takenDeviceBytes: openedDevice().peakBytes(),
      stashHostBytes: executor.stashPeakBytes,
      loss: loss / shape.batch,
      ...perStep(counts())
    })
  }
  executor.close()
}

/** The same with Adam, which runs on the host in threads of the parameter server. */
export function* bertTraining(size: Size, { microbatch }: Plans, limitMs: number): Generator<Row> {
  const shape = shapeOf(size)
  const model = bertModel(shape)
  const threads = size === 'full' ? [1, 4] : [1]
  const start = performance.now()
  for (const [at, serverThreads] of threads.entries()) {
    const end = start + ((at + 1) / threads.length) * STEP_SHARE * limitMs
    yield* training(model, size, { microbatch, serverThreads, end })
  }
}

function* training(
  model: Model,
  size: Size,
  { microbatch, serverThreads, end }: { microbatch: number; serverThreads: number; end: number }
): Generator<Row> {
  const shape = shapeOf(size)
  const engine = new L2LEngine({
    model,
    rule: { name: 'adam', step: 1e-5 },
    averaging: { name: 'none' },
    batch: shape.batch,
    predictWith: 'current',
    schedule: 'l2l-p',
    microbatch,
    serverThreads
  })
  const examples = randomExamples(shape)
  const steps: number[] = []
  for (let step = 0; step <= MOST_STEPS && (step < 2 || performance.now() < end); step++) {
    const start = performance.now()
    engine.learn(examples)
    steps.push(performance.now() - start)
    const { exposedMs, devicePeakBytes, hostPeakBytes } = engine.report()
    const details = { microbatch, peakDeviceBytes: devicePeakBytes, hostPeakBytes, waitingForAdamMs: exposedMs }
    yield stepRow(`l2l-p with Adam, server threads: ${serverThreads}`, shape.batch, steps, details)
  }
  engine.finish()
}

function optionsOf(way: BertWay, { microbatch, planned }: Plans): ExecutorOptions {
  switch (way) {
    case 'baseline':
      return { schedule: 'baseline' }
    case 'planned':
      return planned
    case 'l2l-p with host stash':
      return { schedule: 'l2l-p', microbatch, stash: 'host' }
    default:
      return { schedule: way, microbatch }
  }
}

/** @param steps the first one compiles, and counts only if it is the only one */
function stepRow(name: string, batch: number, steps: readonly number[], details: Row['details']): Row {
  const [firstStepMs, ...rest] = steps
  const ms = rest.length === 0 ? firstStepMs : median(rest)
  const figures = { samplesPerSecond: (1000 * batch) / ms, steps: rest.length, firstStepMs }
  return { name, value: ms, unit: 'ms', details: { ...figures, ...details } }
}

function perStep(counts: Counts | undefined): Readonly<Record<string, number>> {
  return counts === undefined ? {} : { ...counts }
}
