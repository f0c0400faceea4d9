/**
 * A reader of a Kafka topic with messages in JSON: `{"label": 0, "features": [0.5, 2]}`. The position is the next offset of each
 * partition. It is stored with the peer's state, and nothing is committed to the broker.
 */
import { Kafka, logLevel } from 'kafkajs'

export const plugin = {
  readers: {
    /** @param data `kafka://HOST:PORT/TOPIC?group=ID`, with a group that is the peer's own, so that it gets all partitions */
    kafka: data => {
      const { host, pathname, searchParams } = new URL(data)
      const topic = decodeURIComponent(pathname.slice(1))
      const kafka = new Kafka({ clientId: 'admb', brokers: [host], logLevel: logLevel.ERROR })
      return {
        hasPositions: true,
        now: () => newestOffsets(kafka, topic),
        read: (from, { signal, notice }) =>
          messages(kafka, topic, { groupId: searchParams.get('group') ?? 'admb', from, signal, notice })
      }
    }
  }
}

async function newestOffsets(kafka, topic) {
  const admin = kafka.admin()
  await admin.connect()
  const partitions = await admin.fetchTopicOffsets(topic)
  await admin.disconnect()
  return Object.fromEntries(partitions.map(({ partition, high }) => [partition, high]))
}

async function* messages(kafka, topic, { groupId, from = {}, signal, notice }) {
  const consumer = kafka.consumer({ groupId })
  let arrived
  let next
  const expect = () => {
    next = new Promise(resolve => {
      arrived = resolve
    })
  }
  expect()
  signal?.addEventListener('abort', () => arrived(undefined))
  const offsets = { ...from }
  try {
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      // The next message is delivered when this one has been taken.
      eachMessage: ({ partition, message }) => new Promise(taken => arrived({ partition, message, taken }))
    })
    for (const [partition, offset] of Object.entries(from)) {
      consumer.seek({ topic, partition: Number(partition), offset })
    }
    const checked = new Set()
    for (;;) {
      const arrival = await next
      if (arrival === undefined || signal?.aborted) return
      expect()
      const { partition, message, taken } = arrival
      try {
        const [offset, expected] = [BigInt(message.offset), BigInt(offsets[partition] ?? 0)]
        if (offset < expected) continue
        if (offset > expected && !checked.has(partition)) {
          notice(`${topic}: offsets ${expected} to ${offset - 1n} of partition ${partition} no longer exist`)
        }
        checked.add(partition)
        offsets[partition] = String(offset + 1n)
        yield { ...JSON.parse(message.value.toString()), position: { ...offsets } }
      } finally {
        taken()
      }
    }
  } finally {
    await consumer.disconnect()
  }
}
