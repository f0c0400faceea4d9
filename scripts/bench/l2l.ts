/**
 * The executor's schedules on the same transformer: memory by depth, time per step, time spent waiting for the
 * parameter server. Ratios are of CPU time, the minimum over interleaved
 * steps, because the machine may be shared.
 */

import { Random } from '../../src/data/index.js'
import { openDevice } from '../../src/device/index.js'
import { DenseRows } from '../../src/l2l/dense-rows.js'
import { Executor } from '../../src/l2l/executor/executor.js'
import { BlockStore, type ExecutorOptions } from '../../src/l2l/executor/types.js'
import { L2LEngine } from '../../src/l2l/training/engine.js'
import { type Examples, zeros } from '../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../src/nn/blocks.js'
import { createModel } from '../../src/nn/create-model.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import type { Model } from '../../src/nn/types.js'
import type { Row } from './row.js'

const ROUNDS = 8

const VOCABULARY = 64
export const HEADS = 4

interface Shape {
  readonly width: number
  readonly length: number
  readonly batch: number
  readonly microbatch: number
}

/** Small, so that 64 layers take only seconds. */
const MEMORY: Shape = { width: 32, length: 16, batch: 16, microbatch: 2 }
const TIME: Shape = { width: 128, length: 64, batch: 16, microbatch: 8 }
const DEPTHS = [4, 8, 16, 32, 64]

export type Variant = ExecutorOptions & { readonly schedule: NonNullable<ExecutorOptions['schedule']> }

export async function* bench(): AsyncGenerator<Row> {
  const { name: backend } = await openDevice('auto')
  yield* memory(backend)
  yield* time(backend)
  yield* exposed(backend)
}

export interface Step {
  readonly ms: number
  readonly cpuMs: number
  readonly deviceBytes: number
  readonly hostBytes: number
  readonly gradient: readonly Float32Array[]
}

/** One minibatch forward and backward, without the optimizer. */
export function step(model: Model, shape: Shape, variant: Variant): Step {
  const executor = new Executor(model, variant)
  const parameters = initialBlocks(model, 1)
  const gradient = zeros(layoutOf(model))
  const batch = new DenseRows(model)
  const examples = tokens(shape, shape.batch)
  for (let row = 0; row < examples.size; row++) batch.append(examples, row)
  const before = executor.meter.bytes
  executor.meter.resetPeak()
  const start = performance.now()
  const cpu = process.cpuUsage()
  try {
    executor.train(new BlockStore(model, parameters, gradient), batch)
    const ms = performance.now() - start
    const cpuMs = process.cpuUsage(cpu).user / 1000
    const blocks = [...parameters, ...gradient].reduce((sum, block) => sum + block.byteLength, 0)
    return {
      ms,
      cpuMs,
      deviceBytes: executor.meter.peakBytes - before,
      hostBytes: blocks + executor.stashPeakBytes,
      gradient
    }
  } finally {
    executor.close()
  }
}

function variants({ microbatch }: Shape): Variant[] {
  return [
    { schedule: 'baseline' },
    { schedule: 'baseline-ag', microbatch },
    { schedule: 'l2l', microbatch },
    { schedule: 'l2l-p', microbatch },
    { schedule: 'l2l-p', microbatch, stash: 'host' }
  ]
}

export function nameOf({ schedule, stash }: Variant): string {
  return stash === undefined ? schedule : `${schedule}, stash on the ${stash}`
}

function details(backend: string, layers: number, shape: Shape, variant: Variant, measured: Step, reference: Step) {
  return {
    schedule: nameOf(variant),
    backend,
    layers,
    batch: shape.batch,
    microbatch: variant.microbatch ?? shape.batch,
    deviceBytesPeak: measured.deviceBytes,
    hostBytesPeak: measured.hostBytes,
    stepMs: measured.ms,
    stepCpuMs: measured.cpuMs,
    gradientMaxDifference: difference(measured.gradient, reference.gradient)
  }
}

/** The largest difference, relative to the largest gradient. */
function difference(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  let max = 0
  let largest = 0
  for (const [k, block] of a.entries()) {
    for (let i = 0; i < block.length; i++) {
      max = Math.max(max, Math.abs(block[i] - b[k][i]))
      largest = Math.max(largest, Math.abs(b[k][i]))
    }
  }
  return max / largest
}

function* memory(backend: string, depths: readonly number[] = DEPTHS): Generator<Row> {
  const peaks = new Map<string, number[]>()
  for (const layers of depths) {
    const model = gpt(layers, MEMORY)
    const reference = step(model, MEMORY, { schedule: 'baseline-ag', microbatch: MEMORY.microbatch })
    for (const variant of variants(MEMORY)) {
      const measured = step(model, MEMORY, variant)
      const name = nameOf(variant)
      peaks.set(name, [...(peaks.get(name) ?? []), measured.deviceBytes])
      const row = details(backend, layers, MEMORY, variant, measured, reference)
      yield {
        name: `memory, ${layers} layers: ${name}`,
        value: measured.deviceBytes / 2 ** 20,
        unit: 'MB',
        details: row
      }
    }
  }
  const constant = peaks.get('l2l-p, stash on the host') as number[]
  const growth = 100 * (Math.max(...constant) / Math.min(...constant) - 1)
  yield {
    name: `constant memory: max over min, ${depths[0]} to ${depths[depths.length - 1]} layers`,
    value: growth,
    unit: '%',
    target: { max: 1 }
  }
  const stashed = peaks.get('l2l') as number[]
  // Attention and MLP are separate layers: two outputs per transformer layer.
  const stash = MEMORY.batch * 2 * MEMORY.length * MEMORY.width * 4
  const slope = (stashed[stashed.length - 1] - stashed[0]) / (depths[depths.length - 1] - depths[0])
  const off = 100 * Math.abs(slope / stash - 1)
  yield { name: 'l2l: growth per layer compared with mb·A', value: off, unit: '% off', target: { max: 5 } }
}

function* time(backend: string): Generator<Row> {
  const layers = 4
  const model = gpt(layers, TIME)
  const best = new Map<Variant, Step>()
  const all = variants(TIME)
  for (let round = 0; round < ROUNDS; round++) {
    for (const variant of all) {
      const measured = step(model, TIME, variant)
      if (measured.cpuMs < (best.get(variant)?.cpuMs ?? Number.POSITIVE_INFINITY)) best.set(variant, measured)
    }
  }
  const of = (variant: Variant) => best.get(variant) as Step
  for (const variant of all) {
    const row = details(backend, layers, TIME, variant, of(variant), of(all[1]))
    yield { name: `time, ${layers} layers: ${nameOf(variant)}`, value: of(variant).ms, unit: 'ms', details: row }
  }
  const ratio = of(all[3]).cpuMs / Math.min(of(all[0]).cpuMs, of(all[1]).cpuMs)
  yield { name: 'l2l-p over the faster baseline', value: ratio, unit: 'times', target: { max: 1.35 } }
  const host = of(all[4]).cpuMs / of(all[3]).cpuMs
  yield { name: 'l2l-p: stash on the host over stash on the device', value: host, unit: 'times' }
}

/** Training with Adam: the time that the executor waits for the parameter server. */
function* exposed(backend: string): Generator<Row> {
  for (const [schedule, serverThreads] of [
    ['l2l', 0],
    ['l2l-p', 1]
  ] as const) {
    const engine = new L2LEngine({
      model: gpt(4, TIME),
      rule: { name: 'adam' },
      averaging: { name: 'tail' },
      batch: TIME.batch,
      microbatch: TIME.microbatch,
      predictWith: 'current',
      schedule,
      serverThreads
    })
    const total = (steps: number) => {
      engine.learn(tokens(TIME, steps * TIME.batch))
      const { steps: made, stepMs, exposedMs } = engine.report()
      return { stepMs: stepMs * (made - 1), exposedMs: exposedMs * (made - 1) }
    }
    // The server thread is compiled in the first steps.
    const before = total(2 * ROUNDS)
    const after = total(3 * ROUNDS)
    const mean = (which: keyof typeof after) => (after[which] - before[which]) / (3 * ROUNDS)
    const [stepMs, exposedMs] = [mean('stepMs'), mean('exposedMs')]
    engine.finish()
    const details = { backend, stepMs, exposedMs, serverThreads }
    if (serverThreads === 0) yield { name: `training, ${schedule}: step with Adam`, value: stepMs, unit: 'ms', details }
    else {
      const share = (100 * exposedMs) / stepMs
      yield { name: `training, ${schedule}: waiting for Adam`, value: share, unit: '%', target: { max: 5 }, details }
    }
  }
}

export function gpt(layers: number, { width, length }: Pick<Shape, 'width' | 'length'>): Model {
  const spec = parseModel({ model: 'gpt', width, layers, heads: HEADS }, 'bench')
  return createModel(spec, { kind: 'tokens', shape: [length], vocabulary: VOCABULARY }, { kind: 'next-token' })
}

export function tokens({ length }: Shape, size: number): Examples {
  const random = new Random(1)
  const width = length + 1
  return {
    size,
    labels: new Float32Array(size),
    offsets: Int32Array.from({ length: size + 1 }, (_, row) => row * width),
    indices: Int32Array.from({ length: size * width }, (_, i) => i % width),
    values: Float32Array.from({ length: size * width }, () => random.below(VOCABULARY))
  }
}
