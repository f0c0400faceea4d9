/** Bytes of an update on an edge: two nodes, a sparse model of 2¹⁸ weights, and several updates in a round trip. */
import { AdmbNode, compareIds, isFragment, startingPredictor } from '../../src/admb/index.js'
import { createAveraging, createRule, digest } from '../../src/learner/index.js'
import type { Row } from './row.js'

const DIMENSION = 2 ** 18
/** Weights that a batch changes: 18 kB. */
const CHANGED = 3000
/** Periods that a frame takes, in each direction. */
const LATENCY = 4
const ROUND_TRIPS = 10

export async function* bench(): AsyncGenerator<Row> {
  for (const updates of [0.5, 2, 8, 32]) {
    const { bytes, behind } = measure(updates)
    const name = `bytes of an update, ${updates} updates in a round trip`
    yield { name, value: bytes / 1000, unit: 'kB', target: { most: 40 }, details: { 'updates behind': behind } }
  }
}

/** One node learns, the other only receives. */
function measure(updatesPerRoundTrip: number): { readonly bytes: number; readonly behind: number } {
  const layout = { blocks: [{ name: 'weights', length: DIMENSION }] }
  const recipe = { rule: createRule(), averaging: createAveraging(), digest }
  const initial = startingPredictor([new Float32Array(DIMENSION)], recipe)
  const create = (self: string) =>
    new AdmbNode({ ...recipe, self, incarnation: 1, layout, initial, batch: 1, carry: 16, fragmentBytes: 1 << 20 })
  const nodes = [create('a'), create('b')]
  nodes[0].connect(1, 1, 'b')
  nodes[1].connect(1, 1, 'a')
  const inFlight: { readonly at: number; readonly to: number; readonly frame: Uint8Array }[] = []
  const busyUntil = [0, 0]
  let bytes = 0
  let seed = 1
  const send = (now: number, from: number): void => {
    if (busyUntil[from] > now) return
    for (let frame = nodes[from].frame(1); frame; frame = nodes[from].frame(1)) {
      if (from === 0) bytes += frame.length
      inFlight.push({ at: now + LATENCY, to: 1 - from, frame })
      if (isFragment(frame)) continue
      // As between peers, the next frame leaves when the other end has consumed this one.
      busyUntil[from] = now + 2 * LATENCY
      return
    }
  }
  const roundTrip = 2 * LATENCY
  const warmup = 2 * roundTrip
  const end = warmup + ROUND_TRIPS * Math.max(roundTrip, roundTrip / updatesPerRoundTrip)
  let before = 0
  let due = 0
  for (let now = 0; now < end; now++) {
    if (now === warmup) {
      bytes = 0
      before = nodes[0].predictor.id.updates
    }
    for (const node of nodes) node.tick()
    while (inFlight.length > 0 && inFlight[0].at <= now) {
      const { to, frame } = inFlight.shift() as (typeof inFlight)[number]
      nodes[to].receive(1, frame)
      send(now, to)
    }
    for (due += updatesPerRoundTrip / roundTrip; due >= 1; due--) {
      const [sum] = nodes[0].accumulator
      for (let i = 0; i < CHANGED; i++) {
        seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
        sum[seed % DIMENSION] = 1
      }
      nodes[0].added(1)
      nodes[0].takeEffects()
      send(now, 0)
    }
    for (const side of [0, 1]) send(now, side)
  }
  const [{ id }, { id: held }] = nodes.map(({ predictor }) => predictor)
  if (compareIds(id, held) < 0) throw new Error('the receiver is ahead')
  return { bytes: bytes / (id.updates - before), behind: id.updates - held.updates }
}
