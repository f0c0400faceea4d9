/**
 * Where the time of a step goes under each schedule (figure 6 of Pudipeddi et al.), and the throughput at one device budget
 * against the batch (their figure 5).
 */
import { openDevice } from '../../src/device/index.js'
import { DenseRows } from '../../src/l2l/dense-rows.js'
import { Executor } from '../../src/l2l/executor/executor.js'
import { OverBudgetError } from '../../src/l2l/executor/meter.js'
import type { ExecutorOptions } from '../../src/l2l/executor/types.js'
import { ParamServer } from '../../src/l2l/training/param-server.js'
import { eachInitialBlock } from '../../src/nn/blocks.js'
import { gpt, type Shape, tokens } from './l2l-model.js'
import { PHASES, type Phase, PhaseClock } from './l2l-phases.js'
import { Trainer } from './l2l-speed.js'
import type { Row } from './row.js'

const LAYERS = 8
const SPLIT: Shape = { width: 128, length: 64, batch: 32, microbatch: 8 }
const ROUNDS = 8

/** Of the curve: microbatches of conventional training, whose memory is the budget, and of `l2l-p`. */
const CURVE: Omit<Shape, 'batch' | 'microbatch'> = { width: 128, length: 64 }
const SMALL = 2
const LARGE = 16
const BATCHES = [1, 2, 4, 8, 16, 32, 64]
const CURVE_ROUNDS = 4

export async function* bench(): AsyncGenerator<Row> {
  const { name: backend } = await openDevice('auto')
  yield* curve(backend)
  yield* split(backend)
}

function* split(backend: string): Generator<Row> {
  const clock = new PhaseClock()
  clock.watchTransfers()
  const { microbatch } = SPLIT
  const variants: (ExecutorOptions & { readonly serverThreads: number })[] = [
    { schedule: 'baseline-ag', microbatch, serverThreads: 0 },
    { schedule: 'l2l', microbatch, serverThreads: 0 },
    { schedule: 'l2l', microbatch, stash: 'host', serverThreads: 0 },
    { schedule: 'l2l-p', microbatch, stash: 'host', serverThreads: 1 }
  ]
  for (const { serverThreads: threads, ...options } of variants) {
    const model = clock.model(gpt(LAYERS, SPLIT))
    const server = new ParamServer({
      model,
      initial: eachInitialBlock(model, 1),
      rule: { name: 'adam' },
      averaging: { name: 'tail' },
      threads
    })
    const store = {
      reusesMemory: server.reusesMemory,
      weights: (layer: number) => clock.in('optimizer', () => server.weights(layer)),
      pushGradients: (layer: number, gradients: readonly Float32Array[]) =>
        clock.in('optimizer', () => server.pushGradients(layer, gradients)),
      skip: (layer: number) => server.skip(layer)
    }
    const executor = new Executor(model, options)
    const batch = new DenseRows(model)
    const rows = tokens(SPLIT, SPLIT.batch)
    for (let row = 0; row < rows.size; row++) batch.append(rows, row)
    let best: Readonly<Record<Phase, number>> | undefined
    for (let round = 0; round <= ROUNDS; round++) {
      server.begin(batch.size, round)
      const measured = clock.step(() => executor.train(store, batch))
      // The first step compiles.
      if (round > 0 && (best === undefined || total(measured) < total(best))) best = measured
    }
    executor.close()
    server.close()
    if (best === undefined) continue
    const { schedule = '', stash = 'device' } = options
    const name = `step, ${schedule}, stash on the ${stash}`
    const shares = Object.fromEntries(PHASES.map(phase => [`${phase} %`, (100 * best[phase]) / total(best)]))
    yield { name, value: total(best), unit: 'ms', details: { ...shares, backend, layers: LAYERS, ...SPLIT } }
  }
}

function total(phases: Readonly<Record<Phase, number>>): number {
  return PHASES.reduce((sum, phase) => sum + phases[phase], 0)
}

/** Inputs per second of CPU time, with Adam, in the memory that conventional training takes with a small microbatch. */
function* curve(backend: string): Generator<Row> {
  const model = gpt(LAYERS, { ...CURVE, batch: SMALL, microbatch: SMALL })
  const trainer = (batch: number, options: ExecutorOptions) =>
    new Trainer(model, { ...CURVE, batch, microbatch: batch }, options)
  const small = trainer(2 * SMALL, { schedule: 'baseline-ag', microbatch: SMALL })
  // The first steps compile.
  for (let round = 0; round < ROUNDS; round++) small.step()
  const deviceMemory = small.deviceBytes
  small.finish()
  for (const batch of BATCHES) {
    const all = model.layers.map((_, l) => l)
    const layerwise = { schedule: 'l2l-p', stash: 'host', deviceMemory } as const
    const variants = {
      baseline: trainer(batch, { schedule: 'baseline', deviceMemory }),
      'baseline-ag': trainer(batch, { schedule: 'baseline-ag', microbatch: Math.min(batch, SMALL), deviceMemory }),
      'l2l-p': trainer(batch, { ...layerwise, microbatch: Math.min(batch, LARGE) }),
      'l2l-p, activations on the host': trainer(batch, {
        ...layerwise,
        microbatch: Math.min(batch, SMALL),
        offloads: all
      })
    }
    // Interleaved, because the machine may be shared.
    const fitting = new Map(Object.entries(variants))
    for (let round = 0; round < CURVE_ROUNDS; round++) {
      for (const [name, variant] of fitting) if (!fits(variant)) fitting.delete(name)
    }
    for (const [name, { inputsPerSecond: value }] of fitting) {
      const details = { backend, layers: LAYERS, ...CURVE, budgetMB: deviceMemory / 1e6 }
      yield { name: `one budget, batch ${batch}: ${name}`, value, unit: 'inputs/s', details }
    }
    for (const variant of Object.values(variants)) variant.finish()
  }
}

/** Runs a step, if the budget allows. */
function fits(trainer: Trainer): boolean {
  try {
    trainer.step()
    return true
  } catch (error) {
    if (error instanceof OverBudgetError) return false
    throw error
  }
}
