/**
 * What codes of gradients save on the lines of device workers, and what they cost: a transformer learns the characters of a text with four
 * devices, of which three send their gradients in a code. The devices take turns in this process, so there is no line, and only bytes,
 * CPU time and the loss of held-out text are measured.
 */
import { readFileSync } from 'node:fs'
import { Random } from '../../src/data/index.js'
import { openDevice } from '../../src/device/index.js'
import { DenseRows } from '../../src/l2l/dense-rows.js'
import { networkModel } from '../../src/l2l/execution.js'
import { Executor } from '../../src/l2l/executor/executor.js'
import { addToBlock, BlockStore } from '../../src/l2l/executor/types.js'
import { ParamServer } from '../../src/l2l/training/param-server.js'
import { addCoded, codeLength, type GradientCode, GradientEncoder } from '../../src/l2l/workers/gradient-codes.js'
import { type Examples, zeros } from '../../src/learning/index.js'
import { initialBlocks, layoutOf, shapesOf } from '../../src/nn/blocks.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import { FLOAT_BYTES, type Model } from '../../src/nn/types.js'
import type { Row } from './row.js'

const LENGTH = 64
const DEVICES = 4
/** Rows of each device. */
const ROWS = 4
const STEPS = 400
const HELD_OUT_ROWS = 400
const CODES: readonly (GradientCode | undefined)[] = [undefined, 'rank:1', 'rank:2', 'rank:4', 'rank:8', 'sign']

/** @param path of the text, whose last tenth is held out */
export async function* bench(path: string): AsyncGenerator<Row> {
  const { name: backend } = await openDevice('auto')
  const text = readFileSync(path, 'latin1')
  const alphabet = [...new Set(text)].sort()
  const tokens = Float32Array.from(text, character => alphabet.indexOf(character))
  const model = networkModel({
    layers: parseModel({ model: 'gpt', width: 64, layers: 4, heads: 4 }, 'bench'),
    sample: { kind: 'tokens', shape: [LENGTH], vocabulary: alphabet.length },
    target: { kind: 'next-token' }
  })
  for (const code of CODES) {
    const { loss, returnedBytes, gradientMs, codeMs } = learn(model, tokens, code)
    const details = { backend, returnedBytes, gradientMs, codeMs }
    yield { name: `gradients ${code ?? 'as they are'}: held-out loss`, value: loss, unit: 'nats', details }
  }
}

/** Bytes and CPU time are of one device and step. */
function learn(model: Model, tokens: Float32Array, code: GradientCode | undefined) {
  const layout = layoutOf(model)
  const rule = { name: 'adam', step: 0.003 } as const
  const server = new ParamServer({
    model,
    initial: initialBlocks(model, 1),
    rule,
    averaging: { name: 'none' },
    threads: 0
  })
  const coded = code && { code, shapes: shapesOf(model) }
  const encoders = coded && Array.from({ length: DEVICES - 1 }, () => new GradientEncoder(coded))
  const executor = new Executor(model, { schedule: 'baseline-ag' })
  const { parameters } = server.collect()
  const [sum, own] = [zeros(layout), zeros(layout)]
  const random = new Random(5)
  const end = Math.floor(0.9 * tokens.length)
  const draw = (from: number, to: number, count: number) => {
    const rows = new DenseRows(model)
    const starts = Array.from({ length: count }, () => from + random.below(to - from - LENGTH))
    const examples = windows(tokens, starts)
    for (let row = 0; row < count; row++) rows.append(examples, row)
    return rows
  }
  let [gradientMs, codeMs] = [0, 0]
  for (let step = 0; step < STEPS; step++) {
    for (const block of sum) block.fill(0)
    for (let device = 0; device < DEVICES; device++) {
      const rows = draw(0, end, ROWS)
      gradientMs += userMs(() => executor.train(new BlockStore(model, parameters, own), rows))
      const encoder = device > 0 ? encoders?.[device - 1] : undefined
      if (encoder === undefined || coded === undefined)
        for (const [k, block] of own.entries()) addToBlock(sum[k], block)
      else codeMs += userMs(() => own.forEach((block, k) => void addCoded(coded, k, encoder.encode(k, block), sum[k])))
    }
    server.begin(DEVICES * ROWS, step)
    let next = 0
    for (const [l, { weights }] of model.layers.entries())
      if (weights.length > 0) server.pushGradients(l, [sum[next++]])
  }
  const heldOut = draw(end, tokens.length, HELD_OUT_ROWS)
  const { loss } = executor.score(new BlockStore(model, parameters, []), heldOut, STEPS)
  executor.close()
  server.close()
  const lengths = layout.blocks.map(({ length }, k) => (coded ? codeLength(coded, k) : length))
  return {
    loss: loss / HELD_OUT_ROWS,
    returnedBytes: FLOAT_BYTES * lengths.reduce((all, length) => all + length, 0),
    gradientMs: gradientMs / STEPS / DEVICES,
    codeMs: codeMs / STEPS / (DEVICES - 1)
  }
}

function windows(tokens: Float32Array, starts: readonly number[]): Examples {
  const width = LENGTH + 1
  const size = starts.length
  const values = new Float32Array(size * width)
  for (const [row, start] of starts.entries()) values.set(tokens.subarray(start, start + width), row * width)
  return {
    size,
    labels: new Float32Array(size),
    offsets: Int32Array.from({ length: size + 1 }, (_, row) => row * width),
    indices: Int32Array.from(values, (_, i) => i % width),
    values
  }
}

function userMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  return process.cpuUsage(before).user / 1000
}
