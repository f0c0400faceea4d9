/**
 * The figures of `bench -- l2l` that are meaningful on a GPU: bytes on the device by depth, and wall-clock time, because the
 * processor waits while the GPU computes.
 */
import { exposed, memory, nameOf, precision, step, TIME, variants } from '../bench/l2l.js'
import { gpt, type Shape } from '../bench/l2l-model.js'
import { median, type Row } from '../bench/row.js'
import type { Size } from './options.js'

const ROUNDS = 6
/** Fewer than in the benchmark: on a GPU the number of small operations limits the speed. */
const DEPTHS = [4, 8, 16]
const TINY: Shape = { width: 16, length: 8, batch: 4, microbatch: 2 }

export function* schedules(size: Size, backend: string): Generator<Row> {
  const isFull = size === 'full'
  yield* time(backend, isFull ? TIME : TINY, isFull ? 4 : 1, isFull ? ROUNDS : 2)
  if (!isFull) return
  yield* exposed(backend)
  yield* memory(backend, DEPTHS)
  yield* precision(backend)
}

function* time(backend: string, shape: Shape, layers: number, rounds: number): Generator<Row> {
  const model = gpt(layers, shape)
  const all = variants(shape)
  const taken = new Map(all.map(variant => [variant, [] as number[]]))
  for (let round = 0; round <= rounds; round++) {
    for (const variant of all) {
      const { ms } = step(model, shape, variant)
      // The first round compiles.
      if (round > 0) taken.get(variant)?.push(ms)
    }
  }
  for (const [variant, ms] of taken) {
    const details = { backend, layers, microbatch: variant.microbatch ?? shape.batch, least: Math.min(...ms) }
    yield { name: `time, ${layers} layers: ${nameOf(variant)}`, value: median(ms), unit: 'ms', details }
  }
}
