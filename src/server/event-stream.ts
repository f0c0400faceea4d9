/**
 * One stream of server-sent events (WHATWG HTML, section 9.2). A client that reads too slowly receives no events until its
 * connection has drained, and then a snapshot instead of the missed events, so that nothing is queued for it.
 */
import type { ServerResponse } from 'node:http'
import type { NetworkUpdate, NetworkView } from '../view/index.js'

/** Interval of comments that keep the connection alive and detect a dead one, in milliseconds. */
const HEARTBEAT_MS = 15_000
/** Time after which a client that reads nothing is disconnected, in milliseconds. */
const STALL_TIMEOUT_MS = 60_000
/** Time after which a client should reconnect, in milliseconds. */
const RETRY_MS = 2000

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
