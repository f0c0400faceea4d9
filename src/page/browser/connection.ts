/** The stream of what the peer knows, opened again whenever it breaks. */
import { EventParser, type ServerEvent } from '../event-parser.js'

export type ConnectionState =
  | { readonly kind: 'live' }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'broken'; readonly retryMs: number }
  | { readonly kind: 'token-wanted' }

export interface ConnectionHandlers {
  state(state: ConnectionState): void
  event(event: ServerEvent): void
}

const FIRST_RETRY_MS = 1000
const LONGEST_RETRY_MS = 15_000
/** The server says something at least every 15 s; a stream that is silent for longer is dead. */
const SILENCE_MS = 40_000

export class Connection {
  token: string | undefined
  readonly #handlers: ConnectionHandlers
  readonly #parser = new EventParser()
  #retry = FIRST_RETRY_MS
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(token: string | undefined, handlers: ConnectionHandlers) {
    this.token = token
    this.#handlers = handlers
  }

  async open(): Promise<void> {
    clearTimeout(this.#timer)
    const abort = new AbortController()
    let silence = setTimeout(() => abort.abort(), SILENCE_MS)
    try {
      const response = await fetch('events', { headers: this.#headers(), signal: abort.signal, cache: 'no-store' })
      if (response.status === 401) {
        this.#handlers.state({ kind: 'token-wanted' })
        return
      }
      if (!response.ok || response.body === null) throw new Error(`the peer answers ${response.status}`)
      this.#handlers.state({ kind: 'live' })
      this.#retry = FIRST_RETRY_MS
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        clearTimeout(silence)
        silence = setTimeout(() => abort.abort(), SILENCE_MS)
        for (const event of this.#parser.push(part.value)) this.#handlers.event(event)
      }
      this.#again()
    } catch {
      this.#again()
    } finally {
      clearTimeout(silence)
    }
  }

  #headers(): Record<string, string> {
    return {
      accept: 'text/event-stream',
      ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
      ...(this.#parser.lastId === '' ? {} : { 'last-event-id': this.#parser.lastId })
    }
  }

  #again(): void {
    this.#parser.reset()
    this.#handlers.state({ kind: 'broken', retryMs: this.#retry })
    this.#timer = setTimeout(() => void this.open(), this.#retry)
    this.#retry = Math.min(LONGEST_RETRY_MS, 2 * this.#retry)
  }
}
