/** The peer's view of the network: `GET /peers` as a table, and `GET /events` as a stream of events. */
import type { FastifyInstance } from 'fastify'
import type { NetworkView } from '../../view/index.js'
import { EventStream } from '../event-stream.js'
import { RefusedError } from '../failures.js'
import { failures, ref } from '../schemas.js'

export interface NetworkRouteOptions {
  readonly view: NetworkView
}

/** Limit of concurrent event streams. */
const MAX_STREAMS = 64
const STREAM = 'text/event-stream'

export async function networkRoutes(app: FastifyInstance, { view }: NetworkRouteOptions): Promise<void> {
  const table = { 200: { description: 'The network', ...ref('Peers') }, ...failures }
  app.get('/peers', { schema: { summary: 'The status of all peers', response: table } }, () => {
    view.look()
    const { at, self, peers } = view.snapshot()
    return { at, self, peers }
  })

  const streams = new Set<EventStream>()
  const schema = {
    summary: 'Changes of the network as server-sent events: a snapshot, then updates',
    response: {
      200: { description: 'An endless stream of events', content: { [STREAM]: { schema: { type: 'string' } } } },
      ...failures
    }
  }
  app.get('/events', { schema }, (_request, reply) => {
    if (streams.size >= MAX_STREAMS) {
      const remedy = 'close a page, or use another peer'
      throw new RefusedError(503, 'ERR_TOO_MANY_READERS', `${MAX_STREAMS} event streams are already open`, remedy)
    }
    reply.hijack()
    // Headers set by the guards apply to this answer too.
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value)
    }
    const stream = new EventStream(reply.raw, view)
    streams.add(stream)
    reply.raw.on('close', () => streams.delete(stream))
    return reply
  })

  app.addHook('preClose', async () => {
    for (const stream of streams) stream.close()
  })
}
