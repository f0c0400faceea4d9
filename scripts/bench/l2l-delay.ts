/** What a delay of one update does: time per step where the optimizer takes long, and the loss of a small language model. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDevice } from '../../src/device/index.js'
import { L2LEngine } from '../../src/l2l/training/engine.js'
import type { RuleSpec } from '../../src/learner/index.js'
import { shakespeare } from './data.js'
import { gpt, tokens } from './l2l-model.js'
import { runAdmb } from './processes.js'
import type { Row } from './row.js'

const SHAPE = { width: 512, length: 16, batch: 1, microbatch: 1 }
const LAYERS = 6
const BATCHES = [1, 2, 4, 16]
const ROUNDS = 6

export async function* bench(): AsyncGenerator<Row> {
  await openDevice('auto')
  for (const bits of [8, 32] as const) for (const batch of BATCHES) yield time(bits, batch)
  yield* loss()
}

/** The shortest of interleaved steps, each with its wait. */
function time(bits: 8 | 32, batch: number): Row {
  const shape = { ...SHAPE, batch }
  const engines = ([0, 1] as const).map(delay => {
    const rule: RuleSpec = { name: 'adam', bits, delay }
    const options = { model: gpt(LAYERS, shape), rule, averaging: { name: 'none' }, batch } as const
    return new L2LEngine({ ...options, predictWith: 'current', schedule: 'l2l-p', stash: 'host' })
  })
  const least = engines.map(() => Number.POSITIVE_INFINITY)
  const rows = tokens(shape, batch)
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, engine] of engines.entries()) {
      // The first of two steps would find the optimizer idle.
      engine.learn(rows)
      const start = performance.now()
      engine.learn(rows)
      if (round > 0) least[i] = Math.min(least[i], performance.now() - start)
    }
  }
  for (const engine of engines) engine.finish('drop')
  const [plain, delayed] = least
  const name = `Adam, ${bits} bits, ${batch * SHAPE.length} tokens a step: speed with delay=1 relative to none`
  return { name, value: plain / delayed, unit: 'times', details: { plainMs: plain, delayedMs: delayed } }
}

/** The model of `l2l-data`, with fewer steps. */
async function* loss(): AsyncGenerator<Row> {
  const text = shakespeare()
  if (text === undefined) return
  const folder = mkdtempSync(join(tmpdir(), 'admb-l2l-delay-'))
  try {
    const cut = Math.floor(0.9 * text.length)
    const [train, test, model] = ['train.txt', 'test.txt', 'model.yaml'].map(file => join(folder, file))
    writeFileSync(train, text.slice(0, cut))
    writeFileSync(test, text.slice(cut, cut + 40_000))
    writeFileSync(model, 'model: gpt\nwidth: 64\nlayers: 2\nheads: 4\n')
    for (const step of [0.001, 0.003, 0.01]) {
      for (const delay of [0, 1]) {
        const dir = join(folder, `${step}-${delay}`)
        const rule = ['--rule', `adam,step=${step},delay=${delay}`, '--batch', '16', '--limit', '6400']
        const how = ['--schedule', 'l2l-p', '--microbatch', '4', '--predict-with', 'current']
        await runAdmb(['train', '--model', model, '--data', train, ...rule, ...how, '--dir', dir])
        const { loss: value } = await runAdmb<{ loss: number }>(['eval', '--dir', dir, '--data', test])
        yield { name: `tinyshakespeare, gpt, 400 steps of ${step}, delay=${delay}: held-out loss`, value, unit: 'nats' }
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
