/** The planner against trying everything, and against what runs really take. */
import { equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { initialBlocks, layoutOf } from '../../../src/l2l/blocks.js'
import { BlocksHost } from '../../../src/l2l/hosts.js'
import { makePlan, type Plan } from '../../../src/l2l/planning/plan.js'
import { planFor } from '../../../src/l2l/planning/planned.js'
import { type LayerProfile, profileModel } from '../../../src/l2l/planning/profile.js'
import { OverBudgetError } from '../../../src/l2l/relay/meter.js'
import { Relay } from '../../../src/l2l/relay/relay.js'
import {
  PRECISIONS,
  type Precision,
  SCHEDULES,
  type Schedule,
  STASH_PLACES,
  type StashPlace
} from '../../../src/l2l/relay/types.js'
import { DenseRows } from '../../../src/l2l/rows.js'
import { zeros } from '../../../src/learner/index.js'
import { denseModel, randomRows } from '../../support/l2l/dense-model.js'

const precision: Precision = 'float32'
const bytes = fc.integer({ min: 0, max: 9 })
const layer = fc.record({
  weightBytes: bytes,
  outputBytes: bytes,
  insideBytes: bytes,
  forwardMs: fc.integer({ min: 1, max: 20 }),
  again: fc.integer({ min: 0, max: 20 })
})
const chains = fc.array(layer, { minLength: 1, maxLength: 7 })

function profiles(chain: readonly { [K in string]: number }[]): LayerProfile[] {
  return chain.map(({ weightBytes, outputBytes, insideBytes, forwardMs, again }, l) => ({
    name: `layer${l}`,
    kind: 'made up',
    weightBytes,
    outputBytes,
    insideBytes,
    forwardMs,
    vjpMs: 10 + again,
    keptVjpMs: 10,
    forwardWork: { fixed: 0, sample: outputBytes },
    work: { fixed: weightBytes, sample: insideBytes + outputBytes },
    keptWork: { fixed: weightBytes, sample: outputBytes }
  }))
}

describe('the planner', () => {
  it('keeps the insides and weights that save the most, as trying all ways does', () => {
    fc.assert(
      fc.property(chains, fc.integer({ min: 40, max: 256 }), (chain, deviceMemory) => {
        const layers = profiles(chain)
        const fixed = { schedule: 'l2l', microbatch: 2, stash: 'host' } as const
        const task = { profile: { bytesPerMs: 1, layers }, inputBytes: 4, batch: 4, deviceMemory, precision, fixed }
        const found = makePlan(task)
        const live = layers.map((_, l) => liveAt(layers, l))
        let best = Number.NEGATIVE_INFINITY
        // Every way for the layers below the last to keep insides, weights, both or nothing.
        for (let ways = 0; ways < 4 ** (layers.length - 1); ways++) {
          let kept = 0
          let saved = 0
          let fits = true
          for (const [l, { insideBytes, weightBytes, vjpMs, keptVjpMs }] of layers.entries()) {
            const way = (ways >> (2 * l)) & 3
            if (way & 1) {
              kept += 4 * insideBytes
              saved += 4 * (vjpMs - keptVjpMs)
            }
            fits &&= kept + live[l] <= deviceMemory
            if (way & 2) {
              kept += weightBytes
              saved += weightBytes
            }
          }
          if (fits) best = Math.max(best, saved)
        }
        if ('tooLarge' in found) return equal(best, Number.NEGATIVE_INFINITY)
        const stepMs = plainMs(layers) - best
        ok(Math.abs(found.stepMs - stepMs) < 1e-6, `${found.stepMs}, best is ${stepMs}`)
        ok(found.deviceBytes <= deviceMemory)
      }),
      { numRuns: 300 }
    )
  })

  it('expects less time for more memory', () => {
    fc.assert(
      fc.property(
        chains,
        fc.array(fc.integer({ min: 50, max: 5000 }), { minLength: 2, maxLength: 2 }),
        (chain, limits) => {
          const [less, more] = limits.sort((a, b) => a - b)
          const profile = { bytesPerMs: 1, layers: profiles(chain) }
          const plan = (deviceMemory: number) =>
            makePlan({ profile, inputBytes: 4, batch: 8, deviceMemory, precision, fixed: {} })
          const [tight, wide] = [plan(less), plan(more)]
          if ('tooLarge' in tight) return
          // Kept bytes are counted in parts of the memory, so that the last of them may be lost.
          ok((wide as Plan).stepMs <= 1.02 * tight.stepMs)
        }
      )
    )
  })
})

/** A step of four samples with nothing kept but by the last layer, at a byte a millisecond, with the stash on the host. */
function plainMs(layers: readonly LayerProfile[]): number {
  return layers.reduce((sum, { weightBytes, outputBytes, forwardMs, vjpMs, keptVjpMs }, l) => {
    const isLast = l === layers.length - 1
    const copies = isLast ? 2 * weightBytes : 3 * weightBytes + 5 * 4 * outputBytes
    return sum + copies + 4 * (forwardMs + (isLast ? keptVjpMs : vjpMs))
  }, 0)
}

function liveAt(layers: readonly LayerProfile[], l: number): number {
  const { weightBytes, outputBytes, work } = layers[l]
  const input = 2 * (l === 0 ? 4 : layers[l - 1].outputBytes)
  const vjp = input + work.fixed + 2 * (outputBytes + work.sample)
  return 2 * weightBytes + Math.max(vjp, 2 * weightBytes)
}

describe('what is expected of the device', () => {
  before(() => openDevice('cpu'))

  it('is what a run takes, or up to a quarter more, and a budget of what it takes suffices', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 8, max: 64 }), { minLength: 1, maxLength: 4 }), hidden => {
        const model = denseModel(20, hidden, 5)
        const profile = profileModel(model)
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

  it('names the layer that is too large, and what would fit', () => {
    const model = denseModel(20, [200, 10], 5)
    const told =
      /layer dense0 needs at least .* --device-memory allows [\d.]+ kB: give --device-memory [\d.]+kB or more/
    throws(() => planFor(model, profileModel(model), { schedule: 'auto', deviceMemory: 20_000 }, 16), told)
  })
})

function* ways(): Generator<[Schedule, StashPlace | undefined, number, Precision]> {
  for (const microbatch of [4, 16]) {
    for (const schedule of SCHEDULES) {
      if (schedule.startsWith('baseline')) yield [schedule, undefined, microbatch, 'float32']
      else
        for (const stash of STASH_PLACES)
          for (const precision of PRECISIONS) yield [schedule, stash, microbatch, precision]
    }
  }
}

function devicePeak(
  model: ReturnType<typeof denseModel>,
  plan: Plan,
  precision: Precision,
  deviceMemory?: number
): number {
  const { schedule, microbatch, stash, keeps, resident } = plan
  const options = {
    schedule,
    microbatch: schedule === 'baseline' ? undefined : microbatch,
    stash,
    keeps,
    resident,
    precision
  }
  const relay = new Relay(model, options)
  const before = relay.meter.bytes
  relay.meter.limit = deviceMemory === undefined ? Number.POSITIVE_INFINITY : before + deviceMemory
  relay.meter.resetPeak()
  const batch = new DenseRows(model)
  const examples = randomRows(model, 16)
  for (let row = 0; row < 16; row++) batch.append(examples, row)
  try {
    relay.train(new BlocksHost(model, initialBlocks(model, 1), zeros(layoutOf(model))), batch)
    return relay.meter.peakBytes - before
  } finally {
    equal(relay.meter.bytes, before)
    relay.meter.limit = Number.POSITIVE_INFINITY
    relay.close()
  }
}
