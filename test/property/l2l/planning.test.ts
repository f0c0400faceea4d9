/** The planner compared with exhaustive search, and with the memory that runs actually use. */
import { equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor, type TrainStep } from '../../../src/l2l/executor/executor.js'
import { deviceMeter, OverBudgetError } from '../../../src/l2l/executor/meter.js'
import {
  PRECISIONS,
  type Precision,
  SCHEDULES,
  type Schedule,
  STASH_LOCATIONS,
  type StashLocation
} from '../../../src/l2l/executor/types.js'
import { BlockStore } from '../../../src/l2l/parameter-store.js'
import { makePlan, planFor } from '../../../src/l2l/planning/planner.js'
import { type DeviceProfile, type LayerProfile, profileModel } from '../../../src/l2l/planning/profile.js'
import { meanStepMs, type Plan } from '../../../src/l2l/planning/types.js'
import { zeros } from '../../../src/learner/index.js'
import { initialBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { trainingOrder } from '../../../src/nn/layer-order.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Model } from '../../../src/nn/types.js'
import { denseModel, randomRows } from '../../support/l2l/dense-model.js'
import { share } from '../../support/runs.js'

const precision: Precision = 'float32'
/** A head without cost. */
const head = { ms: 0, work: { fixed: 0, sample: 0 } }
const bytes = fc.integer({ min: 0, max: 9 })
const layer = fc.record({
  weightBytes: bytes,
  outputBytes: bytes,
  activationBytes: bytes,
  forwardMs: fc.integer({ min: 1, max: 20 }),
  again: fc.integer({ min: 0, max: 20 })
})
const chains = fc.array(layer, { minLength: 1, maxLength: 7 })
const memories = fc.integer({ min: 40, max: 256 })

function profiles(chain: readonly { [K in string]: number }[]): LayerProfile[] {
  return chain.map(({ weightBytes, outputBytes, activationBytes, forwardMs, again }, l) => ({
    name: `layer${l}`,
    kind: 'made up',
    weightBytes,
    loadBytes: weightBytes,
    gradientBytes: weightBytes,
    hasBackward: true,
    outputBytes,
    activationBytes,
    share: 1,
    from: 0,
    forwardMs,
    vjpMs: 10 + again,
    savedVjpMs: 10,
    forwardWork: { fixed: 0, sample: outputBytes },
    savingWork: { fixed: 0, sample: activationBytes + outputBytes },
    work: { fixed: weightBytes, sample: activationBytes + outputBytes },
    savedWork: { fixed: weightBytes, sample: outputBytes }
  }))
}

describe('the planner', () => {
  it('saves the activations and weights that save the most time, as exhaustive search does', () => {
    fc.assert(
      fc.property(chains, memories, (chain, deviceMemory) =>
        isBest(chain, deviceMemory, { schedule: 'l2l', microbatch: 2, stash: 'host' }, [activations, weights])
      ),
      { numRuns: share(300) }
    )
  })

  it('also chooses the outputs that stay on the device, as exhaustive search does', () => {
    const short = fc.array(layer, { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(short, memories, (chain, deviceMemory) =>
        isBest(chain, deviceMemory, { schedule: 'l2l', microbatch: 2 }, [activations, outputs, weights])
      ),
      { numRuns: share(100) }
    )
  })

  it('expects less time with more memory', () => {
    fc.assert(
      fc.property(
        chains,
        fc.array(fc.integer({ min: 50, max: 5000 }), { minLength: 2, maxLength: 2 }),
        (chain, limits) => {
          const [less, more] = limits.sort((a, b) => a - b)
          const profile = { bytesPerMs: 1, layers: profiles(chain), head }
          const plan = (deviceMemory: number) =>
            makePlan({ profile, inputBytes: 4, batch: 8, deviceMemory, precision, fixed: {} })
          const [tight, wide] = [plan(less), plan(more)]
          if ('tooLarge' in tight) return
          // Saved bytes are quantized to buckets, so the last bucket may be unused.
          ok((wide as Plan).stepMs <= 1.02 * tight.stepMs)
        }
      )
    )
  })
})

/** Without measured times, on which plans depend: those of other plans are looser bounds. */
function withEqualTimes({ layers, ...profile }: DeviceProfile): DeviceProfile {
  return {
    ...profile,
    bytesPerMs: 1e6,
    layers: layers.map(each => ({ ...each, forwardMs: 1, vjpMs: 3, savedVjpMs: 2 }))
  }
}

/** What can stay on the device between the passes over a layer, with what that saves in a step of four samples. */
interface Keeping {
  readonly bytes: number
  readonly saves: number
  /** Whether the bytes that are live while the layer runs include it. */
  readonly isLive?: boolean
}

const activations = ({ activationBytes, vjpMs, savedVjpMs }: LayerProfile): Keeping => ({
  bytes: 4 * activationBytes,
  saves: 4 * (vjpMs - savedVjpMs)
})
const outputs = ({ outputBytes }: LayerProfile): Keeping => ({ bytes: 4 * outputBytes, saves: 5 * 4 * outputBytes })
const weights = ({ weightBytes }: LayerProfile): Keeping => ({ bytes: weightBytes, saves: weightBytes, isLive: true })

/** What each subset keeps: bytes besides those that are live, and those of them. */
function subsets(keepings: readonly Keeping[]): { bytes: number; liveBytes: number; saves: number }[] {
  return Array.from({ length: 2 ** keepings.length }, (_, chosen) => {
    const subset = { bytes: 0, liveBytes: 0, saves: 0 }
    for (const [k, { bytes, saves, isLive }] of keepings.entries()) {
      if (((chosen >> k) & 1) === 0) continue
      subset[isLive ? 'liveBytes' : 'bytes'] += bytes
      subset.saves += saves
    }
    return subset
  })
}

/** Compares the plan with all combinations of `choices` for the layers below the last. */
function isBest(
  chain: Parameters<typeof profiles>[0],
  deviceMemory: number,
  fixed: Parameters<typeof makePlan>[0]['fixed'],
  choices: readonly ((layer: LayerProfile) => Keeping)[]
): void {
  const layers = profiles(chain)
  const profile = { bytesPerMs: 1, layers, head }
  const found = makePlan({ profile, inputBytes: 4, batch: 4, deviceMemory, precision, fixed })
  const live = layers.map((_, l) => liveAt(layers, l))
  let best = Number.NEGATIVE_INFINITY
  const options = layers.map(layer => subsets(choices.map(choice => choice(layer))))
  const ways = 2 ** choices.length
  for (let way = 0; way < ways ** (layers.length - 1); way++) {
    let kept = 0
    let saved = 0
    let fits = true
    for (const [l, ofLayer] of options.entries()) {
      const { bytes, liveBytes, saves } = ofLayer[Math.floor(way / ways ** l) % ways]
      fits &&= kept + bytes + live[l] <= deviceMemory
      kept += bytes + liveBytes
      saved += saves
    }
    if (fits) best = Math.max(best, saved)
  }
  if ('tooLarge' in found) {
    equal(best, Number.NEGATIVE_INFINITY)
    return
  }
  const stepMs = plainMs(layers) - best
  ok(Math.abs(found.stepMs - stepMs) < 1e-6, `${found.stepMs}, best is ${stepMs}`)
  ok(found.deviceBytes <= deviceMemory)
}

/**
 * Time of a step of four samples in which only the last layer saves activations, at one byte per millisecond, with the
 * stash on the host.
 */
function plainMs(layers: readonly LayerProfile[]): number {
  return layers.reduce((sum, { weightBytes, outputBytes, forwardMs, vjpMs, savedVjpMs }, l) => {
    const isLast = l === layers.length - 1
    const copies = isLast ? 2 * weightBytes : 3 * weightBytes + 5 * 4 * outputBytes
    return sum + copies + 4 * (forwardMs + (isLast ? savedVjpMs : vjpMs))
  }, 0)
}

function liveAt(layers: readonly LayerProfile[], l: number): number {
  const { weightBytes, outputBytes, work } = layers[l]
  const input = 2 * (l === 0 ? 4 : layers[l - 1].outputBytes)
  const vjp = input + work.fixed + 2 * (outputBytes + work.sample)
  return 2 * weightBytes + Math.max(vjp, 2 * weightBytes)
}

describe('layers that vary', () => {
  /** Each layer may be skipped, added later, or shuffled with its neighbours. */
  const variations = fc.array(
    fc.record({
      share: fc.constantFrom(1, 0.75, 0.5),
      from: fc.constantFrom(0, 10, 40),
      shuffle: fc.constantFrom(undefined, 'a', 'b')
    }),
    { minLength: 7, maxLength: 7 }
  )
  const schedules = fc.constantFrom(...SCHEDULES)
  const taskOf = (layers: readonly LayerProfile[], schedule: Schedule) => {
    const fixed = { schedule, microbatch: schedule === 'baseline' ? undefined : 2 }
    return { profile: { bytesPerMs: 1, layers, head }, inputBytes: 4, batch: 4, deviceMemory: 1e6, precision, fixed }
  }

  it('take the time of the steps that execute them, and the memory of always being present', () => {
    fc.assert(
      fc.property(chains, variations, schedules, (chain, varied, schedule) => {
        const fixedLayers = profiles(chain)
        const varyingLayers = fixedLayers.map((profile, l) => ({ ...profile, ...varied[l] }))
        const [plain, plan] = [fixedLayers, varyingLayers].map(layers => makePlan(taskOf(layers, schedule)) as Plan)
        ok(plan.deviceBytes >= plain.deviceBytes)
        const sum = plan.parts.reduce((ms, part) => ms + part.ms, 0)
        ok(Math.abs(plan.stepMs - sum) < 1e-9)
        // There is memory for all activations, so both plans save all of them.
        for (const [l, { ms, from }] of plan.parts.slice(0, -1).entries()) {
          ok(Math.abs(ms - varied[l].share * plain.parts[l].ms) < 1e-9)
          equal(from, varied[l].from)
        }
      })
    )
  })

  it('count in a run’s mean from their addition on', () => {
    const plan = {
      parts: [
        { ms: 8, from: 0 },
        { ms: 4, from: 1 },
        { ms: 2, from: 51 },
        { ms: 1, from: 500 }
      ]
    }
    // 100 steps without the first.
    ok(Math.abs(meanStepMs(plan, 100) - (8 + 4 + (2 * 49) / 99)) < 1e-9)
    equal(meanStepMs(plan, 1), 8)
    ok(meanStepMs(plan, 1e9) > 14.99)
  })

  it('never take more memory than expected, for any drawn order', async () => {
    await openDevice('cpu')
    const widths = fc.array(fc.integer({ min: 8, max: 48 }), { minLength: 2, maxLength: 4 })
    const kinds = fc.array(fc.constantFrom('shuffle', 'skip', 'late', 'plain'), { minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(widths, kinds, (inner, varied) => {
        const layers = inner.map((width, i) => ({
          kind: 'mlp',
          inner: width,
          skip: varied[i] === 'skip' ? 0.5 : 0,
          from: varied[i] === 'late' ? 2 : undefined,
          // A group needs at least two adjacent layers.
          shuffle: varied.includes('shuffle') ? 'all' : undefined
        }))
        const spec = parseModel({ layers: [{ kind: 'embedding', width: 8 }, ...layers] }, 'test')
        const model = createModel(spec, { kind: 'tokens', shape: [6], vocabulary: 9 }, { kind: 'next-token' })
        const profile = profileModel(model)
        let whole = 4
        while (trainingOrder(model, whole, 2).length < model.layers.length) whole++
        for (const [schedule, stash, microbatch] of ways()) {
          if (stash === 'disk') continue
          const plan = planFor(model, profile, { schedule, microbatch, stash }, 16)
          const peaks = [0, 1, 2, 3, whole].map(step =>
            devicePeak(model, plan, 'float32', undefined, { step, updates: step === 0 ? 0 : 2 })
          )
          const peak = Math.max(...peaks)
          const what = `${schedule}, stash ${stash}, microbatch ${microbatch}: ${peak}, expected ${plan.deviceBytes}`
          ok(peak <= plan.deviceBytes && plan.deviceBytes <= 2 * peak, what)
        }
      }),
      { numRuns: 3, endOnFailure: true }
    )
  })
})

describe('expected device memory', () => {
  before(() => openDevice('cpu'))

  it('is at least what a run takes and at most a quarter more, and the actual peak suffices as a limit', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 8, max: 64 }), { minLength: 1, maxLength: 4 }), hidden => {
        const model = denseModel(20, hidden, 5)
        const profile = withEqualTimes(profileModel(model))
        for (const [schedule, stash, microbatch, precision] of ways()) {
          const plan = planFor(model, profile, { schedule, microbatch, stash, precision }, 16)
          const peak = devicePeak(model, plan, precision)
          const what = `${schedule}, ${precision}, stash ${stash}, microbatch ${microbatch}: ${peak}, expected ${plan.deviceBytes}`
          ok(peak <= plan.deviceBytes && plan.deviceBytes <= 1.25 * peak, what)
          throws(() => devicePeak(model, plan, precision, 0.8 * peak), OverBudgetError)
          equal(devicePeak(model, plan, precision, peak), peak)
        }
      }),
      { numRuns: 3, endOnFailure: true }
    )
  })

  for (const [name, target] of [
    ['bert', { kind: 'class', classes: 2 }],
    ['gpt2', { kind: 'next-token' }],
    ['llama', { kind: 'next-token' }]
  ] as const) {
    it(`of ${name} is at least what a run takes and at most a quarter more`, () => {
      const sample = { kind: 'tokens', shape: [9], vocabulary: 40, padding: 0, separator: 1 } as const
      const model = createModel(parseModel({ model: name, width: 16, layers: 2, heads: 2 }, name), sample, target)
      const profile = withEqualTimes(profileModel(model))
      for (const [schedule, stash, microbatch, precision] of ways()) {
        const plan = planFor(model, profile, { schedule, microbatch, stash, precision }, 16)
        const peak = devicePeak(model, plan, precision)
        const what = `${schedule}, ${precision}, stash ${stash}, microbatch ${microbatch}: ${peak}, expected ${plan.deviceBytes}`
        ok(peak <= plan.deviceBytes && plan.deviceBytes <= 1.25 * peak, what)
      }
    })
  }

  it('suffices if some outputs stay on the device', () => {
    const sample = { kind: 'tokens', shape: [9], vocabulary: 40 } as const
    const layers = [1, 2, 3].map(i => ({ kind: 'mlp', inner: 8 * i }))
    const spec = parseModel({ layers: [{ kind: 'embedding', width: 24 }, ...layers] }, 'test')
    const model = createModel(spec, sample, { kind: 'next-token' })
    const profile = profileModel(model)
    const planOf = (stash?: StashLocation, deviceMemory?: number) =>
      planFor(model, profile, { schedule: 'l2l-p', microbatch: 4, stash, deviceMemory }, 16)
    const most = planOf('device').deviceBytes
    let mixed = 0
    for (let share = 0.5; share < 1; share += 0.02) {
      const limit = share * most
      let plan: Plan
      try {
        plan = planOf(undefined, limit)
      } catch (error) {
        ok(error instanceof OverBudgetError)
        continue
      }
      const { deviceBytes, deviceOutputs } = plan
      const peak = devicePeak(model, plan, 'float32', limit)
      ok(peak <= deviceBytes && deviceBytes <= 1.25 * peak, `${peak}, expected ${deviceBytes}`)
      if (deviceOutputs.length > 0) mixed++
    }
    ok(mixed > 0)
  })

  it('names the layer that is too large, and the memory that it needs', () => {
    const model = denseModel(20, [200, 10], 5)
    const message =
      /layer dense0 needs at least .* --device-memory allows [\d.]+ kB: use --device-memory [\d.]+kB or more/
    throws(() => planFor(model, profileModel(model), { schedule: 'auto', deviceMemory: 20_000 }, 16), message)
  })
})

function* ways(): Generator<[Schedule, StashLocation | undefined, number, Precision]> {
  for (const microbatch of [4, 16]) {
    for (const schedule of SCHEDULES) {
      if (schedule.startsWith('baseline')) yield [schedule, undefined, microbatch, 'float32']
      else
        for (const stash of STASH_LOCATIONS)
          for (const precision of PRECISIONS) yield [schedule, stash, microbatch, precision]
    }
  }
}

function devicePeak(
  model: Model,
  plan: Plan,
  precision: Precision,
  deviceMemory?: number,
  part: TrainStep = {}
): number {
  const { schedule, microbatch, stash, keeps, resident, deviceOutputs } = plan
  const options = {
    schedule,
    microbatch: schedule === 'baseline' ? undefined : microbatch,
    stash,
    keeps,
    resident,
    deviceOutputs,
    precision
  }
  // Other tests may have left buffers.
  const before = deviceMeter().bytes
  const executor = new Executor(model, { ...options, deviceMemory: deviceMemory && before + deviceMemory })
  executor.meter.resetPeak()
  const batch = new DenseRows(model)
  const examples = randomRows(model, 16)
  for (let row = 0; row < 16; row++) batch.append(examples, row)
  try {
    executor.train(new BlockStore(model, initialBlocks(model, 1), zeros(layoutOf(model))), batch, part)
    return executor.meter.peakBytes - before
  } finally {
    equal(executor.meter.bytes, before)
    executor.close()
  }
}
