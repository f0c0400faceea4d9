/**
 * Memory of the schedules by depth, with the batches of Table 2 of Pudipeddi et al.: measured at any width with what the planner
 * expects, and for BERT-large by the planner alone.
 */
import { openDevice } from '../../src/device/index.js'
import { planning, profileModel } from '../../src/l2l/index.js'
import { ONE_DEVICE } from '../../src/l2l/planning/group.js'
import { type DeviceProfile, inputBytes } from '../../src/l2l/planning/profile.js'
import { createModel } from '../../src/nn/create-model.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import type { Model } from '../../src/nn/types.js'
import { gpt, HEADS, nameOf, type Step, step, type Variant } from './l2l.js'
import type { Row } from './row.js'

const DEPTHS = [12, 24, 48, 96]
const BATCH = 32
const MICROBATCH = 2
const LENGTH = 16
/** Transformer layers that are compared with reversible ones. */
const BLOCKS = 16
const ROUNDS = 5
const MB = 2 ** 20
/** Numbers of bits of a saved activation; undefined keeps it exact. */
const BITS = [undefined, 8, 4, 3, 2, 1]

/** The baseline has the batch that the paper's devices could hold. */
const VARIANTS: readonly (Variant & { readonly batch: number })[] = [
  { schedule: 'baseline', batch: MICROBATCH },
  { schedule: 'baseline-ag', microbatch: MICROBATCH, batch: BATCH },
  { schedule: 'l2l', microbatch: MICROBATCH, batch: BATCH },
  { schedule: 'l2l-p', microbatch: MICROBATCH, batch: BATCH },
  { schedule: 'l2l-p', microbatch: MICROBATCH, stash: 'host', batch: BATCH }
]

/** @param argument `bert-large`, or the width of a model that is executed */
export async function* bench(argument: string): AsyncGenerator<Row> {
  await openDevice('auto')
  const width = argument === 'bert-large' ? undefined : Number(argument)
  if (width !== undefined && !(width > 0 && width % HEADS === 0))
    throw new RangeError(`${argument} is not a width: give a multiple of ${HEADS}, or bert-large`)
  const one = width === undefined ? bertLarge() : gpt(1, { width, length: LENGTH })
  // Without times and with free copies, no plan keeps more than it has to.
  const profile = { ...profileModel(one, false), bytesPerMs: Number.POSITIVE_INFINITY }
  const growth: number[] = []
  const ratios: number[] = []
  for (const variant of VARIANTS) {
    const expected = DEPTHS.map(layers => plannedBytes(one, deeper(profile, layers), variant))
    const measured = width === undefined ? undefined : DEPTHS.map(layers => measuredBytes(width, layers, variant))
    const bytes = measured ?? expected
    growth.push((bytes[bytes.length - 1] - bytes[0]) / (DEPTHS[DEPTHS.length - 1] - DEPTHS[0]))
    if (measured) ratios.push(...measured.map((used, d) => expected[d] / used))
    // The paper has both moments of Adam on the device.
    const moments = (layers: number) => 2 * sum(deeper(profile, layers).layers.map(layer => layer.gradientBytes))
    const hasMoments = width === undefined && variant.schedule.startsWith('baseline')
    yield {
      name: `${argument}, batch ${variant.batch}: ${nameOf(variant)}`,
      value: growth[growth.length - 1] / MB,
      unit: 'MB a layer',
      details: {
        layers: DEPTHS,
        ...(measured && { measuredMB: measured.map(used => used / MB) }),
        plannedMB: expected.map(planned => planned / MB),
        ...(hasMoments && { withMomentsMB: DEPTHS.map((layers, d) => (expected[d] + moments(layers)) / MB) })
      }
    }
  }
  // Attention and MLP are separate layers, each with an output in the stash.
  const stash = BATCH * sum(profile.layers.filter(isRepeated).map(({ outputBytes }) => outputBytes))
  const off = 100 * Math.abs(growth[2] / stash - 1)
  yield { name: `${argument}: growth of l2l compared with mb·A`, value: off, unit: '% off', target: { max: 5 } }
  yield {
    name: `${argument}: growth of l2l-p, stash on the host`,
    value: growth[4] / MB,
    unit: 'MB a layer',
    target: { max: 0.001 }
  }
  if (ratios.length > 0) {
    const name = `${argument}: planned over measured memory, `
    yield { name: `${name}smallest`, value: Math.min(...ratios), unit: 'times', target: { min: 1 } }
    yield { name: `${name}largest`, value: Math.max(...ratios), unit: 'times', target: { max: 1.25 } }
  }
  if (width !== undefined) yield* reversibles(width)
  if (width !== undefined) yield* fewBits(width)
}

/** Transformer layers, and as many in reversible layers, whose branches have the same weights. CPU times are minima of steps in turns. */
function* reversibles(width: number): Generator<Row> {
  const shape = { width, length: 4 * LENGTH, batch: BATCH, microbatch: MICROBATCH }
  const models = [0, 1, 4, BLOCKS].map(layers => (layers === 0 ? gpt(BLOCKS, shape) : reversibleGpt(layers, shape)))
  const runs = models.flatMap(model => (['l2l', 'baseline-ag'] as const).map(schedule => ({ model, schedule })))
  const best = runs.map(() => ({ bytes: 0, cpuMs: Number.POSITIVE_INFINITY }))
  for (let round = 0; round < ROUNDS; round++) {
    for (const [n, { model, schedule }] of runs.entries()) {
      const { deviceBytes, cpuMs } = step(model, shape, { schedule, microbatch: MICROBATCH })
      best[n] = { bytes: deviceBytes, cpuMs: Math.min(cpuMs, best[n].cpuMs) }
    }
  }
  for (const n of models.keys()) {
    const [split, accumulated] = [best[2 * n], best[2 * n + 1]]
    yield {
      name: `${width}, ${BLOCKS} layers: ${['not reversible', '1', '4', 'all'][n]}${n === 0 ? '' : ' in each reversible one'}`,
      value: split.bytes / MB,
      unit: 'MB, l2l',
      details: {
        cpu: split.cpuMs / best[0].cpuMs,
        accumulatedMB: accumulated.bytes / MB,
        accumulatedCpu: accumulated.cpuMs / best[0].cpuMs
      }
    }
  }
}

/** Activations in few bits: memory, CPU time, and the error of the gradient. CPU times are minima of steps in turns. */
function* fewBits(width: number): Generator<Row> {
  const shape = { width, length: 4 * LENGTH, batch: BATCH / 2, microbatch: BATCH / 2 }
  const model = gpt(4, shape)
  const profiles = BITS.map(bits => profileModel(model, false, bits))
  const steps = BITS.map((): Step[] => [])
  for (let round = 0; round < 2 * ROUNDS; round++) {
    for (const [n, bits] of BITS.entries()) {
      steps[n].push(step(model, shape, { schedule: 'baseline-ag', microbatch: shape.microbatch, bits }))
    }
  }
  const cpu = steps.map(runs => Math.min(...runs.map(({ cpuMs }) => cpuMs)))
  const exact = steps[0][0].gradient.flatMap(block => [...block])
  for (const [n, bits = 32] of BITS.entries()) {
    const { deviceBytes, gradient } = steps[n][0]
    const rounded = gradient.flatMap(block => [...block])
    const variant = { schedule: 'baseline-ag', microbatch: shape.microbatch, batch: shape.batch } as const
    yield {
      name: `${width}, activations in ${bits} bits`,
      value: deviceBytes / MB,
      unit: 'MB',
      details: {
        plannedMB: plannedBytes(model, profiles[n], variant) / MB,
        cpu: cpu[n] / cpu[0],
        gradientError: Math.sqrt(sum(exact.map((value, i) => (value - rounded[i]) ** 2)) / sum(exact.map(v => v * v)))
      }
    }
  }
}

function measuredBytes(width: number, layers: number, { batch, ...variant }: (typeof VARIANTS)[number]): number {
  const shape = { width, length: LENGTH, batch, microbatch: MICROBATCH }
  return step(gpt(layers, shape), shape, variant).deviceBytes
}

/** The memory of the schedule as it is, without the activations and weights that the planner would keep. */
function plannedBytes(model: Model, profile: DeviceProfile, { batch, ...variant }: (typeof VARIANTS)[number]): number {
  const { schedule, microbatch, stash = schedule.startsWith('l2l') ? 'device' : undefined } = variant
  const fixed = { schedule, microbatch, stash }
  const limits = { deviceMemory: Number.POSITIVE_INFINITY, hostMemory: 0 }
  const plan = planning.makePlan({
    profile,
    inputBytes: inputBytes(model),
    batch,
    devices: ONE_DEVICE,
    ...limits,
    fixed
  })
  if ('tooLarge' in plan) throw new Error(`no plan for ${nameOf(variant)}`)
  return plan.deviceBytes
}

/** The profile of a model with more transformer layers of the same shape. */
function deeper(profile: DeviceProfile, layers: number): DeviceProfile {
  const first = profile.layers.findIndex(isRepeated)
  const repeated = profile.layers.filter(isRepeated)
  const blocks = Array.from({ length: layers }, () => repeated).flat()
  return { ...profile, layers: profile.layers.toSpliced(first, repeated.length, ...blocks) }
}

function isRepeated({ name }: { readonly name: string }): boolean {
  return name.startsWith('block0.')
}

function reversibleGpt(layers: number, { width, length }: { readonly width: number; readonly length: number }): Model {
  const block = { kind: 'reversible', layers, heads: HEADS, inner: 4 * width, causal: true }
  const blocks = Array.from({ length: BLOCKS / layers }, () => block)
  const spec = parseModel(
    { layers: [{ kind: 'embedding', width: 2 * width }, ...blocks, { kind: 'layer-norm' }] },
    'bench'
  )
  return createModel(spec, { kind: 'tokens', shape: [length], vocabulary: 64 }, { kind: 'next-token' })
}

function bertLarge(): Model {
  const spec = parseModel({ model: 'bert', width: 1024, layers: 1, heads: 16, positions: 512 }, 'bench')
  const sample = { kind: 'tokens', shape: [512], vocabulary: 30_522 } as const
  return createModel(spec, sample, { kind: 'class', classes: 2 })
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
