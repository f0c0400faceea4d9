/** Two peers in one program, each with inputs of its own: what one has learned, the other predicts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createPeer } from 'admb'

const task = { features: 4, classNames: ['no', 'yes'], batch: 32 }
const a = await createPeer({ ...task, listen: ['/ip4/127.0.0.1/tcp/0'] })
const b = await createPeer({ ...task, listen: [], peers: a.addresses })
await new Promise(linked => b.addEventListener('neighbour', linked, { once: true }))
a.addEventListener('adopted', ({ detail }) => console.log(`a took over a predictor of ${detail.updates} updates`))

// Peer a only ever sees the first two features, peer b only the other two.
function inputsWith(first, count) {
  const inputs = Array.from({ length: count }, () => {
    const input = [0, 0, 0, 0]
    input[first] = Math.random() - 0.5
    input[first + 1] = Math.random() - 0.5
    return input
  })
  return { inputs, labels: inputs.map(([w, x, y, z]) => (w - x + y - z > 0 ? 'yes' : 'no')) }
}
for (let round = 0; round < 20; round++) {
  const [ours, theirs] = [inputsWith(0, 100), inputsWith(2, 100)]
  await Promise.all([a.learnAll(ours.inputs, ours.labels), b.learnAll(theirs.inputs, theirs.labels), sleep(50)])
}
while (a.status().predictor.digest !== b.status().predictor.digest) await sleep(50)

const test = inputsWith(2, 500)
const predictions = await a.predictAll(test.inputs)
const hits = predictions.filter(({ label }, i) => label === test.labels[i]).length
console.log(`a, on features that it has never seen: ${((100 * hits) / 500).toFixed(0)} % right`)
await Promise.all([a.stop(), b.stop()])
