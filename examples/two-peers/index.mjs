/** Two peers in one program with different data: each predicts what only the other has learned. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createPeer } from 'admb'

const task = { features: 4, classNames: ['no', 'yes'], batch: 32 }
const a = await createPeer({ ...task, listen: ['/ip4/127.0.0.1/tcp/0'] })
const b = await createPeer({ ...task, listen: [], peers: a.addresses })
await new Promise(linked => b.addEventListener('neighbour', linked, { once: true }))

// Peer a sees only the first two features, peer b only the other two.
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
  const [forA, forB] = [inputsWith(0, 100), inputsWith(2, 100)]
  await Promise.all([a.learnAll(forA.inputs, forA.labels), b.learnAll(forB.inputs, forB.labels), sleep(50)])
}
while (a.status().predictor.digest !== b.status().predictor.digest) await sleep(50)

const { predictor, adopted } = a.status()
console.log(
  `a and b hold the same predictor after ${predictor.updates} updates; a adopted ${adopted} predictors from b`
)
const test = inputsWith(2, 500)
const predictions = await a.predictAll(test.inputs)
const correct = predictions.filter(({ label }, i) => label === test.labels[i]).length
console.log(`a, on features that it has never seen: ${((100 * correct) / 500).toFixed(0)} % correct`)
await Promise.all([a.stop(), b.stop()])
