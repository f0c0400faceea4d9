/**
 * The figures of `bench -- l2l` that mean something on a GPU: bytes on the device by depth, and time by the clock, as the
 * processor waits while the GPU computes.
 */
import { exposed, memory, nameOf, precision, step, TIME, variants } from '../bench/l2l.js'
import { gpt, type Shape } from '../bench/l2l-model.js'
import { median, type Row } from '../bench/row.js'
import type { Size } from './options.js'

const TURNS = 6
/** Fewer than in the benchmark: small operations are bound by their number on a GPU. */
const DEPTHS = [4, 8, 16]
const TINY: Shape = { width: 16, length: 8, batch: 4, microbatch: 2 }

export function* schedules(size: Size, backend: string): Generator<Row> {
  const isFull = size === 'full'
  yield* time(backend, isFull ? TIME : TINY, isFull ? 4 : 1, isFull ? TURNS : 2)
  if (!isFull) return
  yield* exposed(backend)
  yield* memory(backend, DEPTHS)
  yield* precision(backend)
}

function* time(backend: string, shape: Shape, layers: number, turns: number): Generator<Row> {
  const model = gpt(layers, shape)
  const all = variants(shape)
  const taken = new Map(all.map(variant => [variant, [] as number[]]))
  for (let turn = 0; turn <= turns; turn++) {
    for (const variant of all) {
      const { ms } = step(model, shape, variant)
      // The first turn compiles.
      if (turn > 0) taken.get(variant)?.push(ms)
    }
  }
  for (const [variant, ms] of taken) {
    const details = { backend, layers, microbatch: variant.microbatch ?? shape.batch, least: Math.min(...ms) }
    yield { name: `time, ${layers} layers: ${nameOf(variant)}`, value: median(ms), unit: 'ms', details }
  }
}
