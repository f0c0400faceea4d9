/** Trains with a custom loss, update rule, layer and reader: see plugin.mjs. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPeer, train } from 'admb'

// y = 3·x₀ − 2·x₁ + 1, and one label in ten is an outlier.
const folder = await mkdtemp(join(tmpdir(), 'admb-example-'))
const file = join(folder, 'measurements.txt')
const lines = Array.from({ length: 3000 }, (_, i) => {
  const [x0, x1] = [Math.random(), Math.random()]
  return `${3 * x0 - 2 * x1 + 1 + (i % 10 === 0 ? 100 : 0)} <- ${x0} ${x1}`
})
await writeFile(file, `${lines.join('\n')}\n`)

const plugins = [new URL('./plugin.mjs', import.meta.url)]
const data = { data: file, format: 'custom:measurements', passes: 3 }
const rule = { name: 'custom:sign', step: 0.3 }

// In one process, and with a peer, whose learner thread loads the plug-in too.
const trained = await train({ model: 'custom:huber', rule, plugins, data, batch: 8 })
console.log(`train: f(1, 0) = ${trained.predict([1, 0]).label.toFixed(1)}, expected 4`)

const peer = await createPeer({ model: 'custom:huber', rule, plugins, data, batch: 8, listen: [] })
await new Promise(ended => {
  peer.addEventListener('status', ({ detail }) => detail.ended && ended(undefined))
})
console.log(`peer: f(0, 1) = ${(await peer.predict([0, 1])).label.toFixed(1)}, expected -1`)
await peer.stop()

// As a layer of a network.
const layers = [
  { kind: 'custom:scale', start: 0.5 },
  { kind: 'dense', units: 8, activation: 'tanh' }
]
const network = await train({
  model: { layers },
  target: 'number',
  plugins,
  batch: 16,
  inputs: Array.from({ length: 500 }, (_, i) => [i / 500, 1 - i / 500]),
  labels: Array.from({ length: 500 }, (_, i) => i / 250)
})
console.log(`network: ${network.report.averageLoss.toFixed(3)} half the mean squared error`)
await rm(folder, { recursive: true })
