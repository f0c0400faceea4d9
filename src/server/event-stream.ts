/**
 * One reader of the server-sent events (WHATWG HTML, section 9.2). A reader slower than the events gets none until it has caught
 * up, and then a snapshot in place of what it missed: nothing is ever queued for it but what is on its way.
 */
import type { ServerResponse } from 'node:http'
import type { NetworkUpdate, NetworkView } from '../view/index.js'

/** A comment as often as that keeps the connection alive, and shows when it is dead, in milliseconds. */
const HEARTBEAT_MS = 15_000
/** A reader that takes nothing for so long is cut off, in milliseconds. */
const STALL_TIMEOUT_MS = 60_000
/** How soon a reader shall come back after a break, in milliseconds. */
const RETRY_MS = 2000

export class EventStream {
  readonly #response: ServerResponse
  readonly #view: NetworkView
  readonly #heartbeat: NodeJS.Timeout
  readonly #unsubscribe: () => void
  #behindSince: number | undefined

  /** @param response its head is not sent yet */
  constructor(response: ServerResponse, view: NetworkView) {
    this.#response = response
    this.#view = view
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // For nginx, which would hold events back.
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

  /** Ends the stream; the reader comes back by itself if it wants to. */
  close(): void {
    this.#end()
    this.#response.end()
  }

  #sendSnapshot(): void {
    const snapshot = this.#view.snapshot()
    this.#write(message('snapshot', snapshot.events.at(-1)?.seq, snapshot))
  }

  #sendUpdate(update: NetworkUpdate): void {
    if (this.#behindSince === undefined) this.#write(message('update', update.events.at(-1)?.seq, update))
  }

  #write(text: string): void {
    if (!this.#response.write(text)) this.#behindSince ??= performance.now()
  }

  #caughtUp(): void {
    if (this.#behindSince === undefined) return
    this.#behindSince = undefined
    this.#sendSnapshot()
  }

  #onHeartbeat(): void {
    if (this.#behindSince === undefined) this.#write(': still here\n\n')
    else if (performance.now() - this.#behindSince > STALL_TIMEOUT_MS) this.#response.destroy()
  }

  #end(): void {
    clearInterval(this.#heartbeat)
    this.#unsubscribe()
  }
}

/** JSON has no line breaks, so it is one `data` line. */
function message(event: string, id: number | undefined, data: object): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}
