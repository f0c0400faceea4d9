/** What a peer knows of the whole network: as a table, and as a stream of events for those who watch. */
import type { FastifyInstance } from 'fastify'
import type { NetworkView } from '../../view/index.js'
import { EventStream } from '../event-stream.js'

export interface NetworkRouteOptions {
  readonly view: NetworkView
}

/** Readers of the event stream at once. */
const MAX_READERS = 64

export async function networkRoutes(app: FastifyInstance, { view }: NetworkRouteOptions): Promise<void> {
  const streams = new Set<EventStream>()

  app.get('/peers', () => {
    const { at, self, peers } = view.snapshot()
    return { at, self, peers }
  })

  app.get('/events', (_request, reply) => {
    if (streams.size >= MAX_READERS) {
      const error = `${MAX_READERS} readers watch already: close a page, or watch at another peer`
      return reply.code(503).header('retry-after', 10).send({ error, code: 'ERR_TOO_MANY_READERS' })
    }
    reply.hijack()
    // What hooks have said of every answer holds for this one, too.
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
