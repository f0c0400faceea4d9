/** The planner compared with exhaustive search, and with the memory that runs actually use. */
import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { networkModel } from '../../../src/l2l/execution.js'
import { Executor, type TrainStep } from '../../../src/l2l/executor/executor.js'
import { deviceMeter, OverBudgetError } from '../../../src/l2l/executor/step.js'
import { BlockStore, type Schedule, STASH_LOCATIONS, type StashLocation } from '../../../src/l2l/executor/types.js'
import { arrivals, fedDevices } from '../../../src/l2l/planning/feed.js'
import { closedFormMs, ONE_DEVICE, withShardedFeed } from '../../../src/l2l/planning/group.js'
import { makePlan, planFor } from '../../../src/l2l/planning/planner.js'
import { type DeviceProfile, type LayerProfile, profileModel } from '../../../src/l2l/planning/profile.js'
import { fitting, segmentPlans } from '../../../src/l2l/planning/segments.js'
import { stepParts } from '../../../src/l2l/planning/times.js'
import { type GroupDevice, meanStepMs, type Plan, planJson } from '../../../src/l2l/planning/types.js'
import { DevicePool } from '../../../src/l2l/workers/pool.js'
import { zeros } from '../../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { trainingOrder } from '../../../src/nn/layer-order.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'
import type { Model } from '../../../src/nn/types.js'
import { denseModel, randomRows } from '../../support/l2l/dense-model.js'
import { WHOLE_SCHEDULES } from '../../support/layer-plans.js'
import { share } from '../../support/runs.js'

const hostMemory = 1e9
/** A head without cost. */
const head = { ms: 0, work: [] }
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
    keptBytes: 0,
    share: 1,
    from: 0,
    forwardMs,
    vjpMs: 10 + again,
    savedVjpMs: 10,
    forwardWork: [{ fixed: 0, sample: outputBytes }],
    savingWork: [{ fixed: 0, sample: activationBytes + outputBytes }],
    work: [{ fixed: weightBytes, sample: activationBytes + outputBytes }],
    savedWork: [{ fixed: weightBytes, sample: outputBytes }]
  }))
}

describe('the planner', () => {
  it('saves the activations and weights that save the most time, as exhaustive search does', () => {
    fc.assert(
      fc.property(chains, memories, (chain, deviceMemory) => {
        isBest(chain, deviceMemory, { stash: 'host' }, product(ACTIVATIONS.slice(0, 2), WEIGHTS))
      }),
      { numRuns: share(300) }
    )
  })

  it('also chooses the activations and outputs that move to the host, and segments, as exhaustive search does', () => {
    const short = fc.array(layer, { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(short, memories, (chain, deviceMemory) => {
        isBest(
          chain,
          deviceMemory,
          {},
          product(ACTIVATIONS, OUTPUTS, WEIGHTS),
          product(ACTIVATIONS, ON_DEVICE, WEIGHTS)
        )
      }),
      { numRuns: share(100) }
    )
  })

  it('divides the layers into segments if the stash is to be on the device, as exhaustive search does', () => {
    const choices = product(ACTIVATIONS.slice(0, 2), ON_DEVICE, WEIGHTS)
    fc.assert(
      fc.property(fc.array(layer, { minLength: 3, maxLength: 6 }), memories, (chain, deviceMemory) => {
        isBest(chain, deviceMemory, { stash: 'device' }, undefined, choices)
      }),
      { numRuns: share(300) }
    )
    // Depending on the memory: no plan, segments, or none.
    const wide = { weightBytes: 1, outputBytes: 9, activationBytes: 0, forwardMs: 1, again: 0 }
    const divided = new Set<number | undefined>()
    for (let deviceMemory = 40; deviceMemory <= 256; deviceMemory++) {
      const plan = isBest(Array(5).fill(wide), deviceMemory, { stash: 'device' }, undefined, choices)
      divided.add(plan && planJson(plan).unstashed.length)
    }
    ok(divided.has(undefined) && divided.has(0) && divided.has(1), `${[...divided]}`)
  })

  it('recomputes a chain of equal layers as often as Revolve does, with the memory that executing a layer leaves', () => {
    for (let length = 2; length <= 12; length++) {
      for (let slots = 1; slots < length; slots++) {
        const layers = Array.from({ length }, () => ({
          live: 0,
          outputBytes: 1,
          activationBytes: 0,
          activationMs: 0,
          againMs: 1
        }))
        // While a sweep executes a layer, up to three outputs are on the device besides snapshots: of Revolve's, two are between them.
        const { lostMs = 0 } = fitting(segmentPlans(layers, length, slots + 2, 1)(0, length - 1), slots + 2) ?? {}
        const [most, least] = [revolve(length, slots), revolve(length, slots + 1)]
        ok(lostMs >= least && lostMs <= most, `${lostMs} of ${least} to ${most}, length ${length}, slots ${slots}`)
      }
    }
  })

  it('divides the time of a step into parts', () => {
    fc.assert(
      fc.property(chains, memories, fc.constantFrom('device', 'host'), (chain, deviceMemory, stash) => {
        const profile: DeviceProfile = {
          bytesPerMs: 10,
          sumBytesPerMs: 10,
          layers: profiles(chain),
          head: { ...head, ms: 3 }
        }
        const fixed = { schedule: 'l2l', stash } as const
        const plan = makePlan({
          profile,
          inputBytes: 1,
          batch: 4,
          devices: ONE_DEVICE,
          deviceMemory,
          hostMemory,
          fixed
        })
        if ('tooLarge' in plan) return
        const parts = Object.values(stepParts(profile, plan, 4))
        ok(parts.every(ms => ms >= 0))
        ok(Math.abs(parts.reduce((sum, ms) => sum + ms, 0) - plan.stepMs) <= 1e-9 * plan.stepMs)
      })
    )
  })

  it('expects less time with more memory', () => {
    fc.assert(
      fc.property(
        chains,
        fc.array(fc.integer({ min: 50, max: 5000 }), { minLength: 2, maxLength: 2 }),
        (chain, limits) => {
          const [less, more] = limits.sort((a, b) => a - b)
          const profile = { bytesPerMs: 1, sumBytesPerMs: 1, layers: profiles(chain), head }
          const plan = (deviceMemory: number) =>
            makePlan({ profile, devices: ONE_DEVICE, inputBytes: 4, batch: 8, deviceMemory, hostMemory, fixed: {} })
          const [tight, wide] = [plan(less), plan(more)]
          if ('tooLarge' in tight) return
          // Saved bytes are quantized to buckets, so the last bucket may be unused.
          ok((wide as Plan).stepMs <= 1.02 * tight.stepMs)
        }
      )
    )
  })
})

describe('the plan of a group', () => {
  const device = fc.record({
    speed: fc.constantFrom(1, 0.5, 2),
    lineBytesPerMs: fc.option(fc.constantFrom(0.5, 4), { nil: undefined })
  })
  const requests = fc.record({
    chain: chains,
    others: fc.array(device, { minLength: 1, maxLength: 3 }),
    schedule: fc.constantFrom(...WHOLE_SCHEDULES),
    batch: fc.integer({ min: 1, max: 9 })
  })
  const requestOf = ({
    chain,
    others,
    schedule,
    batch
  }: typeof requests extends fc.Arbitrary<infer T> ? T : never) => ({
    profile: { bytesPerMs: 1, sumBytesPerMs: 2, layers: profiles(chain), head },
    inputBytes: 4,
    batch,
    devices: [{ speed: 1 }, ...others],
    deviceMemory: 1e6,
    hostMemory,
    fixed: { schedule }
  })

  it('takes at least the time of the closed form, and that time if all devices share one memory', () => {
    fc.assert(
      fc.property(requests, fc.boolean(), (drawn, isLocal) => {
        const others = drawn.others.map(other => (isLocal ? { ...other, lineBytesPerMs: undefined } : other))
        const request = requestOf({ ...drawn, others })
        const plan = makePlan(request) as Plan
        const bound = closedFormMs(request, plan)
        ok(plan.stepMs >= bound - 1e-9, `${plan.stepMs}, closed form ${bound}`)
        if (isLocal) ok(plan.stepMs <= bound + 1e-9, `${plan.stepMs}, closed form ${bound}`)
        const parts = plan.parts.reduce((sum, { ms }) => sum + ms, 0)
        ok(Math.abs(parts - plan.stepMs) < 1e-9)
        equal(
          plan.devices?.reduce((sum, { rows }) => sum + rows, 0),
          drawn.batch
        )
      })
    )
  })

  it('takes less time with faster lines', () => {
    fc.assert(
      fc.property(requests, drawn => {
        const request = requestOf(drawn)
        const plan = makePlan(request) as Plan
        const devices = request.devices.map(({ speed, ...rest }: GroupDevice) => ({
          speed,
          lineBytesPerMs: rest.lineBytesPerMs && 3 * rest.lineBytesPerMs
        }))
        ok((makePlan({ ...request, devices }) as Plan).stepMs <= plan.stepMs + 1e-9)
      })
    )
  })

  it('takes less time with gradients in fewer bytes, and counts them', () => {
    fc.assert(
      fc.property(requests, fc.integer({ min: 0, max: 9 }), (drawn, few) => {
        const request = requestOf(drawn)
        const plan = makePlan(request) as Plan
        const codedBytes = request.profile.layers.map(({ gradientBytes }) => Math.min(few, gradientBytes))
        const coded = makePlan({ ...request, codedBytes }) as Plan
        ok(coded.stepMs <= plan.stepMs + 1e-9)
        const sum = codedBytes.reduce((all, bytes) => all + bytes, 0)
        for (const { rows, lineBytesPerMs, returnedBytes } of coded.devices ?? [])
          equal(returnedBytes, rows > 0 && lineBytesPerMs !== undefined ? sum : 0)
        ok(coded.stepMs >= closedFormMs(request, coded) - 1e-9)
      })
    )
  })

  it('divides a feed among devices of other machines, which gains where they share a line', () => {
    const lines = fc.option(fc.constantFrom(0.5, 4), { nil: undefined })
    fc.assert(
      fc.property(requests, lines, (drawn, ownLine) => {
        const request = requestOf(drawn)
        const devices = request.devices.map((device, d) => (d === 0 ? { ...device, lineBytesPerMs: ownLine } : device))
        const plan = makePlan({ ...request, devices }) as Plan
        ok(plan.stepMs >= closedFormMs({ ...request, devices }, plan) - 1e-9)
        const sharded = withShardedFeed({ ...request, devices }, plan)
        const remote = plan.devices?.filter(({ rows, lineBytesPerMs }, d) => d > 0 && rows > 0 && lineBytesPerMs) ?? []
        equal(sharded !== undefined, remote.length > 1)
        if (sharded === undefined) return
        ok(sharded.stepMs >= closedFormMs({ ...request, devices }, sharded, true) - 1e-9)
        if (ownLine === undefined) ok(sharded.stepMs >= plan.stepMs - 1e-9)
        const weights = request.profile.layers.reduce((sum, { weightBytes }) => sum + weightBytes, 0)
        for (const { rows, lineBytesPerMs, receivedBytes } of sharded.devices?.slice(1) ?? [])
          if (rows > 0 && lineBytesPerMs) equal(receivedBytes, weights / remote.length + 4 * rows)
      })
    )
    const device = { speed: 1, lineBytesPerMs: 1 }
    const fed = fedDevices(Array(5).fill(device), [1, 1, 1, 1, 1])
    const ends = [false, true].map(isSharded =>
      arrivals(fed, Array(16).fill(8), [0, 0, 0, 0], isSharded).map(times => times.at(-1))
    )
    // Four times 16 layers over one line; and each layer once, with the exchange of the last one.
    deepEqual(ends, [Array(4).fill(512), Array(4).fill(128 + 6)])
  })

  const ways = {
    2: [['baseline-ag'], ['l2l-p', 'host']],
    3: [
      ['l2l', 'host'],
      ['l2l-p', 'device']
    ]
  } as const
  for (const workers of [2, 3] as const) {
    it(`expects the memory that each of ${workers} workers takes`, async () => {
      await openDevice('cpu')
      const network: NetworkSpec = {
        layers: parseModel({ model: 'mlp', hidden: [48, 40] }, 'test'),
        sample: { kind: 'features', shape: [20] },
        target: { kind: 'class', classes: 5 }
      }
      const model = networkModel(network)
      const profile = withEqualTimes(profileModel(model))
      for (const [schedule, stash] of ways[workers]) {
        // 5 microbatches, so that shares differ.
        const plan = planFor(model, profile, { schedule, stash, microbatch: 4, workers }, 18)
        const executorOptions = { schedule, stash, microbatch: 4, layers: plan.layers }
        const blocks = initialBlocks(model, 1).map(block => {
          const shared = new Float32Array(new SharedArrayBuffer(block.byteLength))
          shared.set(block)
          return shared
        })
        const pool = await DevicePool.open({ network, backend: 'cpu', executorOptions, weights: { blocks }, workers })
        const executor = new Executor(model, executorOptions)
        executor.meter.resetPeak()
        const batch = new DenseRows(model)
        const examples = randomRows(model, 18)
        for (let row = 0; row < 18; row++) batch.append(examples, row)
        pool.train(executor, new BlockStore(model, blocks, zeros(layoutOf(model))), batch)
        const peaks = (pool.report() ?? []).map(({ peakBytes = 0 }) => peakBytes)
        pool.close()
        executor.close()
        const what = `${schedule}, stash ${stash}: ${peaks}, expected ${plan.deviceBytes}`
        equal(peaks.length, workers)
        ok(
          peaks.every(peak => peak > 0 && peak <= plan.deviceBytes),
          what
        )
        ok(plan.deviceBytes <= 1.25 * Math.max(...peaks), what)
      }
    }).timeout(60_000)
  }
})

/** Forward steps of a chain with snapshots, of which the input is one (Griewank, Walther: "Algorithm 799: revolve", theorem 4.1). */
function revolve(length: number, snapshots: number): number {
  const beta = (s: number, r: number) => {
    let product = 1
    for (let i = 1; i <= s; i++) product = (product * (r + i)) / i
    return r < 0 ? 0 : product
  }
  let repetitions = 0
  while (beta(snapshots, repetitions) < length) repetitions++
  return repetitions * length - beta(snapshots + 1, repetitions - 1)
}

/** Without measured times, on which plans depend: those of other plans are looser bounds. */
function withEqualTimes({ layers, ...profile }: DeviceProfile): DeviceProfile {
  return {
    ...profile,
    bytesPerMs: 1e6,
    layers: layers.map(each => ({ ...each, forwardMs: 1, vjpMs: 3, savedVjpMs: 2 }))
  }
}

/** A choice for a layer: what it adds to the bytes on the device from its execution on, and after it, and the time that it saves. */
interface Choice {
  readonly bytes?: number
  readonly later?: number
  readonly saves?: number
}

type Choices = (layer: LayerProfile) => readonly Choice[]

const NOTHING = () => ({})
const ACTIVATIONS: readonly ((layer: LayerProfile) => Choice)[] = [
  NOTHING,
  ({ activationBytes, vjpMs, savedVjpMs }) => ({
    bytes: 4 * activationBytes,
    saves: 4 * (vjpMs - savedVjpMs)
  }),
  // On the host, to which they are copied and back.
  ({ activationBytes, vjpMs, savedVjpMs }) => ({
    saves: 4 * (vjpMs - savedVjpMs) - 2 * 4 * activationBytes
  })
]
const OUTPUTS: typeof ACTIVATIONS = [
  NOTHING,
  ({ outputBytes }) => ({ bytes: 4 * outputBytes, saves: 5 * 4 * outputBytes })
]
const WEIGHTS: typeof ACTIVATIONS = [NOTHING, ({ weightBytes }) => ({ later: weightBytes, saves: weightBytes })]
const ON_DEVICE: typeof ACTIVATIONS = [({ outputBytes }) => ({ later: 4 * outputBytes, saves: 5 * 4 * outputBytes })]

/** All combinations of one choice of each kind. */
function product(...kinds: readonly (typeof ACTIVATIONS)[]): Choices {
  return layer =>
    kinds.reduce<readonly Choice[]>(
      (combined, kind) =>
        combined.flatMap(one =>
          kind.map(choose => {
            const other: Choice = choose(layer)
            return {
              bytes: (one.bytes ?? 0) + (other.bytes ?? 0),
              later: (one.later ?? 0) + (other.later ?? 0),
              saves: (one.saves ?? 0) + (other.saves ?? 0)
            }
          })
        ),
      [{}]
    )
}

/**
 * Compares the plan with all combinations of choices for the layers below the last, with the stash on the host or on the device.
 * @returns the plan; undefined if none fits
 */
function isBest(
  chain: Parameters<typeof profiles>[0],
  deviceMemory: number,
  fixed: { readonly stash?: StashLocation },
  onHost?: Choices,
  onDevice?: Choices
): Plan | undefined {
  const layers = profiles(chain)
  const profile = { bytesPerMs: 1, sumBytesPerMs: 1, layers, head }
  const options = { schedule: 'l2l', microbatch: 2, ...fixed } as const
  const found = makePlan({
    profile,
    devices: ONE_DEVICE,
    inputBytes: 4,
    batch: 4,
    deviceMemory,
    hostMemory,
    fixed: options
  })
  const most = Math.max(
    onHost ? mostSaved(layers, onHost, deviceMemory, false) : Number.NEGATIVE_INFINITY,
    onDevice ? mostSaved(layers, onDevice, deviceMemory, true) : Number.NEGATIVE_INFINITY
  )
  if ('tooLarge' in found) {
    equal(most, Number.NEGATIVE_INFINITY)
    return undefined
  }
  const stepMs = plainMs(layers) - most
  ok(Math.abs(found.stepMs - stepMs) < 1e-6, `${found.stepMs}, best is ${stepMs}`)
  ok(found.deviceBytes <= deviceMemory)
  return found
}

/** Time that the best combination saves; −∞ if none fits. @param isStashed whether the stash is on the device */
function mostSaved(
  layers: readonly LayerProfile[],
  choices: Choices,
  deviceMemory: number,
  isStashed: boolean
): number {
  let most = Number.NEGATIVE_INFINITY
  const last = layers.length - 1
  const outputs = ({ outputBytes }: LayerProfile) => (isStashed ? 4 * outputBytes : 0)
  const choose = (l: number, kept: number, saved: number): void => {
    if (l > last) {
      most = Math.max(most, saved)
      return
    }
    for (const choice of l === last ? [{}] : choices(layers[l])) {
      const { bytes = 0, later = 0, saves = 0 }: Choice = choice
      const during = kept + bytes + (l < last ? outputs(layers[l]) : 0)
      if (during + liveAt(layers, l) <= deviceMemory) choose(l + 1, kept + bytes + later, saved + saves)
    }
    for (let end = l + 1; isStashed && end < last; end++) {
      const copies = layers.slice(l, end + 1).reduce((sum, layer) => sum + 5 * outputs(layer), 0)
      for (const { peak, lost } of sweeps(layers, l, end)) {
        if (kept + peak <= deviceMemory) choose(end + 1, kept + outputs(layers[end]), saved + copies - lost)
      }
    }
  }
  choose(0, 0, 0)
  return most
}

/** All ways to recompute the outputs of a segment from its input, in nested sweeps, and to save activations in them. */
function* sweeps(
  layers: readonly LayerProfile[],
  first: number,
  last: number
): Generator<{ peak: number; lost: number }> {
  const out = (l: number) => 4 * layers[l].outputBytes
  if (first === last) yield { peak: out(last) + liveAt(layers, last), lost: 0 }
  for (let at = first + 1; at <= last; at++) {
    let [sweep, again] = [0, 0]
    for (let l = first; l < at; l++) {
      sweep = Math.max(sweep, (l > first ? out(l - 1) : 0) + out(l) + liveAt(layers, l) + out(last))
      again += 4 * layers[l].forwardMs + layers[l].weightBytes
    }
    for (const above of sweeps(layers, at, last)) {
      for (const below of sweeps(layers, first, at - 1)) {
        for (const saves of at === first + 1 ? [0, 1] : [0]) {
          const { activationBytes, vjpMs, savedVjpMs } = layers[first]
          const bytes = saves * 4 * activationBytes
          yield {
            peak: bytes + Math.max(sweep, above.peak + out(at - 1), below.peak),
            lost: again + above.lost + below.lost - saves * 4 * (vjpMs - savedVjpMs)
          }
        }
      }
    }
  }
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
  const [{ fixed, sample }] = work
  const vjp = input + fixed + 2 * (outputBytes + sample)
  return 2 * weightBytes + Math.max(vjp, 2 * weightBytes)
}

describe('layers that vary', () => {
  /** Each layer may be skipped or added later. */
  const variations = fc.array(
    fc.record({
      share: fc.constantFrom(1, 0.75, 0.5),
      from: fc.constantFrom(0, 10, 40)
    }),
    { minLength: 7, maxLength: 7 }
  )
  const schedules = fc.constantFrom(...WHOLE_SCHEDULES)
  const taskOf = (layers: readonly LayerProfile[], schedule: Schedule) => {
    const fixed = { schedule, microbatch: schedule === 'baseline' ? undefined : 2 }
    const profile = { bytesPerMs: 1, sumBytesPerMs: 1, layers, head }
    return { profile, devices: ONE_DEVICE, inputBytes: 4, batch: 4, deviceMemory: 1e6, hostMemory, fixed }
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
    const kinds = fc.array(fc.constantFrom('skip', 'late', 'plain'), { minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(widths, kinds, (inner, varied) => {
        const layers = inner.map((width, i) => ({
          kind: 'mlp',
          inner: width,
          skip: varied[i] === 'skip' ? 0.5 : 0,
          from: varied[i] === 'late' ? 2 : undefined
        }))
        const spec = parseModel({ layers: [{ kind: 'embedding', width: 8 }, ...layers] }, 'test')
        const model = createModel(spec, { kind: 'tokens', shape: [6], vocabulary: 9 }, { kind: 'next-token' })
        const profile = profileModel(model)
        let whole = 4
        while (trainingOrder(model, whole, 2).length < model.layers.length) whole++
        for (const [schedule, stash, microbatch] of ways()) {
          const plan = planFor(model, profile, { schedule, microbatch, stash }, 16)
          const peaks = [0, 1, 2, 3, whole].map(step =>
            devicePeak(model, plan, undefined, { step, updates: step === 0 ? 0 : 2 })
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
  // Another model of the process holds memory, too.
  let others: tf.Tensor
  before(async () => {
    await openDevice('cpu')
    others = tf.zeros([50_000])
  })
  after(() => others.dispose())

  it('is at least what a run takes and at most a quarter more, and the actual peak suffices as a limit', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 8, max: 64 }), { minLength: 1, maxLength: 4 }), hidden => {
        const model = denseModel(20, hidden, 5)
        const profile = withEqualTimes(profileModel(model))
        for (const [schedule, stash, microbatch] of ways()) {
          const plan = planFor(model, profile, { schedule, microbatch, stash }, 16)
          const peak = devicePeak(model, plan)
          const what = `${schedule}, stash ${stash}, microbatch ${microbatch}: ${peak}, expected ${plan.deviceBytes}`
          ok(peak <= plan.deviceBytes && plan.deviceBytes <= 1.25 * peak, what)
          throws(() => devicePeak(model, plan, 0.8 * peak), OverBudgetError)
          equal(devicePeak(model, plan, peak), peak)
        }
      }),
      { numRuns: 3, endOnFailure: true, examples: [[[8, 59]], [[16, 37]]] }
    )
  })

  for (const [name, target] of [
    ['bert', { kind: 'class', classes: 2 }],
    ['gpt2', { kind: 'next-token' }],
    ['llama', { kind: 'next-token' }],
    ['reversible', { kind: 'next-token' }]
  ] as const) {
    it(`of ${name} is at least what a run takes and at most a quarter more`, () => {
      const sample = { kind: 'tokens', shape: [9], vocabulary: 40, padding: 0, separator: 1 } as const
      const reversible = { kind: 'reversible', layers: 2, heads: 2, inner: 32, causal: true }
      const layers = [{ kind: 'embedding', width: 16 }, reversible, reversible]
      const value = name === 'reversible' ? { layers } : { model: name, width: 16, layers: 2, heads: 2 }
      const model = createModel(parseModel(value, name), sample, target)
      const profile = withEqualTimes(profileModel(model))
      for (const [schedule, stash, microbatch] of ways()) {
        const plan = planFor(model, profile, { schedule, microbatch, stash }, 16)
        const peak = devicePeak(model, plan)
        const what = `${schedule}, stash ${stash}, microbatch ${microbatch}: ${peak}, expected ${plan.deviceBytes}`
        ok(peak <= plan.deviceBytes && plan.deviceBytes <= 1.25 * peak, what)
      }
    })
  }

  for (const [what, stash, width, inner, microbatch, fields] of [
    ['some outputs stay on the device', undefined, 24, [1, 2, 3, 1], 4, ['deviceOutputs', 'offloads']],
    ['layers are recomputed in nested segments', 'device', 48, Array<number>(12).fill(1), 1, ['unstashed', 'nested']]
  ] as const) {
    it(`suffices if ${what}`, () => {
      const sample = { kind: 'tokens', shape: [9], vocabulary: 40 } as const
      const layers = inner.map(i => ({ kind: 'mlp', inner: 8 * i }))
      const spec = parseModel({ layers: [{ kind: 'embedding', width }, ...layers] }, 'test')
      const model = createModel(spec, sample, { kind: 'next-token' })
      // Slow transfers, which outputs on the device save.
      const profile = { ...withEqualTimes(profileModel(model)), bytesPerMs: 1e4 }
      const planOf = (stash?: StashLocation, deviceMemory?: number) =>
        planFor(model, profile, { schedule: 'l2l-p', microbatch, stash, deviceMemory }, 16)
      const most = planOf('device').deviceBytes
      const seen = new Set<string>()
      for (let share = stash === 'device' ? 0.14 : 0.3; share < 1; share += 0.05) {
        const limit = share * most
        let plan: Plan
        try {
          plan = planOf(stash, limit)
        } catch (error) {
          ok(error instanceof OverBudgetError)
          continue
        }
        const { deviceBytes } = plan
        const peak = devicePeak(model, plan, limit)
        ok(peak <= deviceBytes && deviceBytes <= 1.25 * peak, `${peak}, expected ${deviceBytes}`)
        for (const field of fields) if (planJson(plan)[field].length > 0) seen.add(field)
      }
      deepEqual([...seen].sort(), [...fields].sort())
    })
  }

  it('names the layer that is too large, and the memory that it needs', () => {
    const model = denseModel(20, [200, 10], 5)
    const message =
      /layer dense0 needs at least .* --device-memory allows [\d.]+ kB: use --device-memory [\d.]+kB or more/
    throws(() => planFor(model, profileModel(model), { schedule: 'auto', deviceMemory: 20_000 }, 16), message)
  })
})

function* ways(): Generator<[Schedule, StashLocation | undefined, number | undefined]> {
  for (const microbatch of [4, 16]) {
    for (const schedule of WHOLE_SCHEDULES) {
      if (schedule.startsWith('baseline')) yield [schedule, undefined, schedule === 'baseline' ? undefined : microbatch]
      else for (const stash of STASH_LOCATIONS) yield [schedule, stash, microbatch]
    }
  }
}

function devicePeak(model: Model, plan: Plan, deviceMemory?: number, part: TrainStep = {}): number {
  const { schedule, microbatch, stash, layers } = plan
  const options = {
    schedule,
    microbatch: schedule === 'baseline' ? undefined : microbatch,
    stash,
    layers
  }
  // The limit is that of the model: buffers of other tests do not count.
  const before = deviceMeter().bytes
  const executor = new Executor(model, { ...options, deviceMemory })
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
