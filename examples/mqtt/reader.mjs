/**
 * A reader of MQTT messages, in JSON: `{"sequence": 1, "label": 0, "features": [0.5, 2]}`. The broker keeps the session of a peer
 * that is away (QoS 1, no clean start). MQTT has no offsets, so the publisher numbers its messages: a repeated number is skipped,
 * and missing ones are reported. Messages that a broker has kept and new ones may overtake each other.
 */
import { once } from 'node:events'
import { connect } from 'mqtt'

/** Messages after a missing one that are awaited before it is reported. */
const OVERTAKING = 1000

export const plugin = {
  readers: {
    /** @param data `mqtt://HOST:PORT/TOPIC?client=ID`, with an id that is the peer's own */
    mqtt: data => {
      const { protocol, host, pathname, searchParams } = new URL(data)
      const topic = decodeURIComponent(pathname.slice(1))
      const clientId = searchParams.get('client') ?? 'admb'
      return {
        repeatable: false,
        hasPositions: true,
        forwardOnly: true,
        read: (from, { signal, notice }) => messages(`${protocol}//${host}`, topic, { clientId, from, signal, notice })
      }
    }
  }
}

async function* messages(url, topic, { clientId, from, signal, notice }) {
  const client = connect(url, { clientId, clean: false })
  let arrived = () => {}
  let next = new Promise(resolve => {
    arrived = resolve
  })
  // Set at once, because the broker begins with the messages that it has kept. It sends the next one when this one is
  // acknowledged, and repeats one that was not.
  client.handleMessage = (packet, acknowledge) => arrived({ packet, acknowledge })
  signal?.addEventListener('abort', () => arrived(undefined))
  // All messages up to this number have been read, and those ahead of it in the set.
  let last = from?.sequence
  const ahead = new Set(from?.ahead)
  try {
    await once(client, 'connect', { signal })
    // Its answer comes after messages that are kept, so it is not awaited.
    client.subscribe(topic, { qos: 1 })
    for (;;) {
      const message = await next
      if (message === undefined || signal?.aborted) return
      next = new Promise(resolve => {
        arrived = resolve
      })
      const { sequence, label, features } = JSON.parse(message.packet.payload.toString())
      const isRepeated = last !== undefined && (sequence <= last || ahead.has(sequence))
      try {
        if (isRepeated) continue
        last ??= sequence - 1
        ahead.add(sequence)
        if (ahead.size > OVERTAKING) {
          const first = Math.min(...ahead)
          notice(`${topic}: messages ${last + 1} to ${first - 1} are missing`)
          last = first - 1
        }
        while (ahead.delete(last + 1)) last++
        yield { label, features, position: { sequence: last, ahead: [...ahead] } }
      } finally {
        message.acknowledge()
      }
    }
  } finally {
    // A message that is not acknowledged comes again.
    await client.endAsync(true)
  }
}
