/**
 * One update of a large sparse model between two nodes, as in two peers: both learn half a batch of rows with random features. One
 * sends its sum, the other updates and sends the step, which the first replays. Gradients are not measured.
 */
import { AdmbNode, nextPredictor, startingPredictor } from '../../src/admb/index.js'
import { recycle } from '../../src/admb/vectors.js'
import type { Examples } from '../../src/learner/index.js'
import { linearParts } from '../../src/task/learning-spec.js'
import { median, type Row } from './row.js'

const BATCH = 128
/** Features of a row. A batch touches at most 3,840. */
const ROW_FEATURES = 30
const WARMUP = 5
const UPDATES = 15

/** Milliseconds of an update, by what takes them. */
interface Times {
  readonly sum: number
  readonly update: number
  readonly step: number
  readonly replay: number
}

export async function* bench(): AsyncGenerator<Row> {
  for (const sums of ['exact', 'lattice'] as const) {
    for (const bits of [18, 20, 24]) {
      yield* rowsOf(`2^${bits} features, ${sums} sums`, measure(bits, sums))
    }
  }
  yield* rowsOf('2^20 features, lattice sums, lazy l2', measure(20, 'lattice', UPDATES, { l2: 1e-6 }))
}

function* rowsOf(name: string, { times, predictor }: ReturnType<typeof measure>): Generator<Row> {
  const value = times.sum + times.update + times.step + times.replay
  yield { name: `${name}: next predictor`, value: predictor, unit: 'ms', target: { most: 1 } }
  yield { name: `${name}: update at two peers`, value, unit: 'ms', details: { ...times } }
}

export function measure(
  bits: number,
  sums: 'exact' | 'lattice',
  updates = UPDATES,
  options: { readonly l2?: number } = {}
): { readonly times: Times; readonly predictor: number } {
  const spec: Parameters<typeof linearParts>[0] = {
    model: 'logistic',
    dimension: 2 ** bits,
    batch: BATCH,
    rule: { name: 'adagrad', maxLossDecrease: 1, ...options },
    averaging: { name: 'tail' },
    features: { constant: false, hashBits: bits, scale: 'none' },
    ...(sums === 'lattice' && { sums })
  }
  const { learner, recipe } = linearParts(spec)
  const initial = startingPredictor(learner.initial(), recipe)
  const create = (self: string) =>
    new AdmbNode({
      ...recipe,
      self,
      incarnation: 1,
      layout: learner.layout,
      initial,
      batch: BATCH,
      carry: 16,
      marksElements: true
    })
  const [a, b] = [create('a'), create('b')]
  a.connect(1, 1, 'b')
  b.connect(1, 1, 'a')
  const learn = (node: AdmbNode, rows: Examples) => {
    learner.addGradient(node.predictor.parameters, rows, 0, rows.size, node.accumulator)
  }
  /** Announcements and acknowledgements. */
  const settle = () => {
    for (const [from, to] of [
      [b, a],
      [a, b],
      [b, a]
    ]) {
      from.tick()
      for (let frame = from.frame(1); frame; frame = from.frame(1)) to.receive(1, frame)
    }
  }
  settle()
  const all: Times[] = []
  const predictors: number[] = []
  let replica = initial
  const random = randomIntegers(2 ** bits)
  for (let update = 0; update < WARMUP + updates; update++) {
    for (const node of [a, b]) learn(node, drawRows(random))
    b.added(BATCH / 2)
    b.tick()
    const [sum, sumFrame] = timed(() => b.frame(1))
    const [update] = timed(() => {
      if (sumFrame) a.receive(1, sumFrame)
      a.added(BATCH / 2)
    })
    const made = a.takeEffects().find(effect => effect.kind === 'updated')
    if (made === undefined) throw new Error('no update')
    const [step, stepFrame] = timed(() => a.frame(1))
    const [replay] = timed(() => {
      if (stepFrame) b.receive(1, stepFrame)
    })
    const adopted = b.takeEffects().some(({ kind }) => kind === 'adopted')
    if (!adopted) throw new Error('the step was not adopted')
    all.push({ sum, update, step, replay })
    const batch = { ...made.batch }
    const [predictor, next] = timed(() => nextPredictor(replica, batch, made.header.id, recipe))
    recycle(batch.sum)
    if (next.id.digest !== made.predictor.id.digest) throw new Error('the digests differ')
    replica = next
    predictors.push(predictor)
    settle()
  }
  const medianOf = (key: keyof Times) => median(all.slice(WARMUP).map(times => times[key]))
  return {
    times: { sum: medianOf('sum'), update: medianOf('update'), step: medianOf('step'), replay: medianOf('replay') },
    predictor: median(predictors.slice(WARMUP))
  }
}

function timed<T>(run: () => T): [ms: number, result: T] {
  const start = performance.now()
  const result = run()
  return [performance.now() - start, result]
}

function drawRows(random: () => number): Examples {
  const size = BATCH / 2
  return {
    size,
    labels: Float32Array.from({ length: size }, () => random() & 1),
    offsets: Int32Array.from({ length: size + 1 }, (_, row) => row * ROW_FEATURES),
    indices: Int32Array.from({ length: size * ROW_FEATURES }, random),
    values: new Float32Array(size * ROW_FEATURES).fill(1)
  }
}

/** Integers below a power of two. */
function randomIntegers(limit: number): () => number {
  let seed = 1
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d) >>> (32 - Math.log2(limit))
  }
}
