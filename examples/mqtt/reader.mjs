/**
 * A reader of MQTT messages, in JSON: `{"sequence": 1, "label": 0, "features": [0.5, 2]}`. The broker keeps the session of a peer
 * that is away (QoS 1, no clean start). MQTT has no offsets, so the publisher numbers its messages: a repeated number is skipped,
 * and missing ones are reported.
 */
import { once } from 'node:events'
import { connect } from 'mqtt'

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
  let last = from?.sequence
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
      const isRepeated = last !== undefined && sequence <= last
      try {
        if (isRepeated) continue
        if (last !== undefined && sequence > last + 1)
          notice(`${topic}: messages ${last + 1} to ${sequence - 1} are missing`)
        last = sequence
        yield { label, features, position: { sequence } }
      } finally {
        message.acknowledge()
      }
    }
  } finally {
    await client.endAsync()
  }
}
