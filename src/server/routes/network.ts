/** The peer's view of the network: `GET /peers` as a table, and `GET /events` as a stream of events. */

import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Peer } from '../../peer/index.js'
import type { NetworkUpdate, NetworkView } from '../../view/index.js'
import { RefusedError } from '../failures.js'
import { failures, ref } from '../schemas.js'

interface NetworkRouteOptions {
  readonly view: NetworkView
  /** Undefined for an observer, whose view has all peers that it knows. */
  readonly peer?: Pick<Peer, 'search' | 'subtree'>
}

interface Query {
  readonly search?: string
  /** Peer ids, separated by commas. */
  readonly path?: string
}

const QUERY = {
  type: 'object',
  properties: {
    search: { type: 'string', minLength: 1, maxLength: 64, description: 'Part of a peer id or name.' },
    path: {
      type: 'string',
      pattern: '^[1-9A-HJ-NP-Za-km-z]{1,64}(,[1-9A-HJ-NP-Za-km-z]{1,64}){0,254}$',
      description: 'Ids of tree neighbours, separated by commas: the peers behind the last one.'
    }
  },
  additionalProperties: false
} as const

/** Limit of concurrent event streams. */
const MAX_STREAMS = 64
const STREAM = 'text/event-stream'

export async function networkRoutes(app: FastifyInstance, { view, peer }: NetworkRouteOptions): Promise<void> {
  const table = { 200: { description: 'The network', ...ref('Peers') }, ...failures }
  const summary = 'The network as a whole, and the status of its nearest peers, of peers by name, or of a subtree'
  app.get<{ Querystring: Query }>(
    '/peers',
    { config: { roles: ['read'] }, schema: { summary, querystring: QUERY, response: table } },
    async ({ query: { search, path } }) => {
      view.look()
      const { at, self, network, peers } = view.snapshot()
      if (search !== undefined) return { at, self, network, peers: (await peer?.search(search)) ?? view.find(search) }
      if (path === undefined) return { at, self, network, peers }
      const subtree = await peer?.subtree(path.split(','))
      if (subtree !== undefined) return { at, self, ...subtree }
      throw new RefusedError(404, 'ERR_NO_SUBTREE', 'no peer answers at the end of this path', 'search for the peer')
    }
  )

  const streams = new Set<EventStream>()
  const schema = {
    summary: 'Changes of the network as server-sent events: a snapshot, then updates',
    response: {
      200: { description: 'An endless stream of events', content: { [STREAM]: { schema: { type: 'string' } } } },
      ...failures
    }
  }
  app.get('/events', { config: { roles: ['read'] }, schema }, (_request, reply) => {
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

/** Interval of comments that keep the connection alive and detect a dead one, in milliseconds. */
const HEARTBEAT_MS = 15_000
/** Time after which a client that reads nothing is disconnected, in milliseconds. */
const STALL_TIMEOUT_MS = 60_000
/** Time after which a client should reconnect, in milliseconds. */
const RETRY_MS = 2000

/**
 * One stream of server-sent events (WHATWG HTML, section 9.2). A client that reads too slowly receives no events until its
 * connection has drained, and then a snapshot instead of the missed events, so that nothing is queued for it.
 */
export class EventStream {
  readonly #response: ServerResponse
  readonly #view: NetworkView
  readonly #heartbeat: NodeJS.Timeout
  readonly #unsubscribe: () => void
  #behindSince: number | undefined
  /** Whether the client has not received an update. A large snapshot alone fills the buffer of the response. */
  #hasMissed = false

  /** @param response whose head has not been sent */
  constructor(response: ServerResponse, view: NetworkView) {
    this.#response = response
    this.#view = view
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // Prevents nginx from buffering events.
      'x-accel-buffering': 'no'
    })
    this.#heartbeat = setInterval(() => this.#onHeartbeat(), HEARTBEAT_MS)
    this.#unsubscribe = view.subscribe(update => this.#sendUpdate(update))
    response.on('drain', () => this.#caughtUp())
    response.on('close', () => this.#end())
    response.on('error', () => this.#end())
    this.#write(`retry: ${RETRY_MS}\n\n`)
    this.#sendSnapshot()
  }

  /** Ends the stream. The client may reconnect. */
  close(): void {
    this.#end()
    this.#response.end()
  }

  #sendSnapshot(): void {
    const snapshot = this.#view.snapshot()
    this.#write(message('snapshot', snapshot.events.at(-1)?.seq, snapshot))
  }

  #sendUpdate(update: NetworkUpdate): void {
    if (this.#behindSince !== undefined) this.#hasMissed = true
    else this.#write(message('update', update.events.at(-1)?.seq, update))
  }

  #write(text: string): void {
    if (!this.#response.write(text)) this.#behindSince ??= performance.now()
  }

  #caughtUp(): void {
    if (this.#behindSince === undefined) return
    this.#behindSince = undefined
    if (!this.#hasMissed) return
    this.#hasMissed = false
    this.#sendSnapshot()
  }

  #onHeartbeat(): void {
    if (this.#behindSince === undefined) this.#write(': keep-alive\n\n')
    else if (performance.now() - this.#behindSince > STALL_TIMEOUT_MS) this.#response.destroy()
  }

  #end(): void {
    clearInterval(this.#heartbeat)
    this.#unsubscribe()
  }
}

/** Formats an event. JSON has no line breaks, so it is one `data` line. */
function message(event: string, id: number | undefined, data: object): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}
