/** A peer learns from a Kafka topic, is stopped, and learns what was produced meanwhile: see reader.mjs. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPeer } from 'admb'
import { Kafka, logLevel, Partitioners } from 'kafkajs'

const broker = process.env.KAFKA ?? '127.0.0.1:9092'
const topic = `measurements-${Date.now()}`
const kafka = new Kafka({ clientId: 'sensor', brokers: [broker], logLevel: logLevel.ERROR })
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
await producer.connect()

async function produce(count) {
  const messages = Array.from({ length: count }, () => {
    const features = [Math.random() - 0.5, Math.random() - 0.5]
    return { value: JSON.stringify({ label: features[0] > features[1] ? 1 : 0, features }) }
  })
  await producer.send({ topic, messages })
}

const dir = await mkdtemp(join(tmpdir(), 'admb-example-'))
function startPeer() {
  return createPeer({
    features: 2,
    classes: 2,
    batch: 8,
    plugins: [new URL('./reader.mjs', import.meta.url)],
    data: { data: `kafka://${broker}/${topic}?group=${topic}`, format: 'custom:kafka' },
    dir,
    listen: []
  })
}

async function learned(peer, inputs) {
  while (peer.status().inputs < inputs) await sleep(50)
}

await produce(300)
const first = await startPeer()
await learned(first, 300)
console.log(`the first run learned ${first.status().inputs} messages`)
await first.stop()

await produce(200)
const second = await startPeer()
await produce(100)
await learned(second, 600)
const { inputs, accuracy } = second.status()
console.log(`the second run learned ${inputs - 300} messages, 200 of them from between the runs`)
console.log(`accuracy: ${(100 * accuracy).toFixed(0)} %`)
await second.stop()

await producer.disconnect()
await rm(dir, { recursive: true })
