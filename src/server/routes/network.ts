/** What a peer knows of the whole network: as a table, and as a stream of events for those who watch. */
import type { FastifyInstance } from 'fastify'
import type { NetworkView } from '../../view/index.js'
import { EventStream } from '../event-stream.js'
import { RefusedError } from '../failures.js'
import { failures, ref } from '../schemas.js'

export interface NetworkRouteOptions {
  readonly view: NetworkView
}

/** Readers of the event stream at once. */
const MAX_READERS = 64
const STREAM = 'text/event-stream'

export async function networkRoutes(app: FastifyInstance, { view }: NetworkRouteOptions): Promise<void> {
  const table = { 200: { description: 'The network', ...ref('Peers') }, ...failures }
  app.get('/peers', { schema: { summary: 'How are all peers?', response: table } }, () => {
    const { at, self, peers } = view.snapshot()
    return { at, self, peers }
  })

  const streams = new Set<EventStream>()
  const schema = {
    summary: 'What changes in the network, as server-sent events: a snapshot first, then updates',
    response: {
      200: { description: 'Events without end', content: { [STREAM]: { schema: { type: 'string' } } } },
      ...failures
    }
  }
  app.get('/events', { schema }, (_request, reply) => {
    if (streams.size >= MAX_READERS) {
      const remedy = 'close a page, or watch at another peer'
      throw new RefusedError(503, 'ERR_TOO_MANY_READERS', `${MAX_READERS} readers watch already`, remedy)
    }
    reply.hijack()
    // What the guards say of every answer holds for this one, too.
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
