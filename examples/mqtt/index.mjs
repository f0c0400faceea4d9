/** A peer learns from an MQTT topic, is stopped, and learns what was published meanwhile: see reader.mjs. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPeer } from 'admb'
import { Aedes } from 'aedes'
import { connectAsync } from 'mqtt'

// A broker in this process. Elsewhere, give the address of your own.
const broker = await Aedes.createBroker()
const server = createServer(broker.handle)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `mqtt://127.0.0.1:${server.address().port}`
const sensor = await connectAsync(url)

let sequence = 0
async function publish(count) {
  for (let i = 0; i < count; i++) {
    const features = [Math.random() - 0.5, Math.random() - 0.5]
    const label = features[0] > features[1] ? 1 : 0
    await sensor.publishAsync('sensors', JSON.stringify({ sequence: ++sequence, label, features }), { qos: 1 })
  }
}

const dir = await mkdtemp(join(tmpdir(), 'admb-example-'))
async function startPeer() {
  return createPeer({
    features: 2,
    classes: 2,
    batch: 8,
    plugins: [new URL('./reader.mjs', import.meta.url)],
    data: { data: `${url}/sensors?client=one`, format: 'custom:mqtt' },
    dir,
    listen: []
  })
}

async function learned(peer, inputs) {
  while (peer.status().inputs < inputs) await sleep(50)
}

// What is published before the first subscription is not kept.
const subscribed = once(broker, 'subscribe')
const first = await startPeer()
await subscribed
await publish(300)
await learned(first, 300)
console.log(`the first run learned ${first.status().inputs} messages`)
const disconnected = once(broker, 'clientDisconnect')
await first.stop()
await disconnected

await publish(200)
const second = await startPeer()
await publish(100)
await learned(second, 600)
const { inputs, accuracy } = second.status()
console.log(`the second run learned ${inputs - 300} messages, 200 of them from between the runs`)
console.log(`accuracy: ${(100 * accuracy).toFixed(0)} %`)
await second.stop()

await sensor.endAsync()
await new Promise(resolve => broker.close(resolve))
server.close()
await rm(dir, { recursive: true })
