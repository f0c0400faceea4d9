/** Two peers in one program, each with its own half of the inputs: what one learns, the other predicts. */
import { createPeer } from 'admb'

const task = { features: 2, classNames: ['outside', 'inside'], model: { model: 'mlp', hidden: [16] }, batch: 32 }
const a = await createPeer({ ...task, listen: ['/ip4/127.0.0.1/tcp/0'] })
const b = await createPeer({ ...task, listen: [], peers: a.addresses })
b.addEventListener('adopted', ({ detail }) => console.log(`b took over a predictor of ${detail.updates} updates`))
await new Promise(linked => b.addEventListener('neighbour', linked, { once: true }))

// Points, and whether they lie inside the unit circle. Peer a never sees one on the right, peer b none on the left.
function points(count, side) {
  const inputs = Array.from({ length: count }, () => [side * 2 * Math.random(), 4 * Math.random() - 2])
  return { inputs, labels: inputs.map(([x, y]) => (x * x + y * y < 1 ? 'inside' : 'outside')) }
}
for (let round = 0; round < 30; round++) {
  const [left, right] = [points(100, -1), points(100, 1)]
  await Promise.all([a.learnAll(left.inputs, left.labels), b.learnAll(right.inputs, right.labels)])
}

const test = points(500, 1)
const predictions = await a.predictAll(test.inputs)
const hits = predictions.filter(({ label }, i) => label === test.labels[i]).length
console.log(`a knows the side that it has never seen: ${((100 * hits) / 500).toFixed(0)} % right`)
await Promise.all([a.stop(), b.stop()])
