/**
 * The connection to the peer's event stream, which is reopened whenever it breaks, and the list of events, newest first.
 * Important events are also announced to screen readers.
 */

import type { NetworkEvent } from '../../view/types.js'
import { EventParser, type NetworkState, type ServerEvent } from '../network-state.js'
import { describeEvent } from '../sentences.js'
import { html, keyed, setText } from './dom.js'

export type ConnectionState =
  | { readonly kind: 'live' }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'broken'; readonly retryMs: number }
  | { readonly kind: 'token-required'; readonly reason: string }

interface ConnectionHandlers {
  state(state: ConnectionState): void
  event(event: ServerEvent): void
}

const INITIAL_RETRY_MS = 1000
const MAX_RETRY_MS = 15_000
/** Time without data after which the stream counts as dead. The server sends something at least every 15 s. */
const IDLE_TIMEOUT_MS = 40_000

export class Connection {
  token: string | undefined
  readonly #handlers: ConnectionHandlers
  readonly #parser = new EventParser()
  #retry = INITIAL_RETRY_MS
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(token: string | undefined, handlers: ConnectionHandlers) {
    this.token = token
    this.#handlers = handlers
  }

  async open(): Promise<void> {
    clearTimeout(this.#timer)
    const abort = new AbortController()
    let idleTimer = setTimeout(() => abort.abort(), IDLE_TIMEOUT_MS)
    try {
      const response = await fetch('events', { headers: this.#headers(), signal: abort.signal, cache: 'no-store' })
      // 403 also for host names other than loopback, which no token changes.
      if (response.status === 401 || response.status === 403) {
        const { error = '' } = (await response.json().catch(() => ({}))) as { readonly error?: string }
        this.#handlers.state({ kind: 'token-required', reason: this.token === undefined ? '' : error })
        return
      }
      if (!response.ok || response.body === null) throw new Error(`HTTP status ${response.status}`)
      this.#handlers.state({ kind: 'live' })
      this.#retry = INITIAL_RETRY_MS
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        clearTimeout(idleTimer)
        idleTimer = setTimeout(() => abort.abort(), IDLE_TIMEOUT_MS)
        for (const event of this.#parser.push(part.value)) this.#handlers.event(event)
      }
      this.#reconnect()
    } catch {
      this.#reconnect()
    } finally {
      clearTimeout(idleTimer)
    }
  }

  /** A resource of the peer as JSON; undefined if it cannot be read. */
  async get(path: string): Promise<unknown> {
    try {
      const response = await fetch(path, { headers: { ...this.#headers(), accept: 'application/json' } })
      return response.ok ? await response.json() : undefined
    } catch {
      return undefined
    }
  }

  #headers(): Record<string, string> {
    return {
      accept: 'text/event-stream',
      ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
      ...(this.#parser.lastId === '' ? {} : { 'last-event-id': this.#parser.lastId })
    }
  }

  #reconnect(): void {
    this.#parser.reset()
    this.#handlers.state({ kind: 'broken', retryMs: this.#retry })
    this.#timer = setTimeout(() => void this.open(), this.#retry)
    this.#retry = Math.min(MAX_RETRY_MS, 2 * this.#retry)
  }
}

const MAX_SHOWN = 60
const SYMBOLS: Readonly<Record<NetworkEvent['kind'], string>> = {
  joined: '+',
  left: '−',
  lost: '?',
  partitioned: '≠',
  healed: '=',
  adopted: '→',
  restarted: '↻',
  refused: '×',
  drift: '↗',
  duplicated: '‖'
}
const ANNOUNCED: readonly NetworkEvent['kind'][] = [
  'lost',
  'partitioned',
  'healed',
  'restarted',
  'refused',
  'drift',
  'duplicated'
]
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false
})

export class EventList {
  readonly #list: HTMLElement
  readonly #announcer: HTMLElement
  #announced: number | undefined

  constructor(list: HTMLElement, announcer: HTMLElement) {
    this.#list = list
    this.#announcer = announcer
  }

  draw({ events, peers }: NetworkState): void {
    keyed(
      this.#list,
      events.slice(-MAX_SHOWN).reverse(),
      ({ seq, at }) => `${seq} ${at}`,
      ({ kind, at }) =>
        html(
          'li',
          { class: kind },
          html('span', { class: 'symbol', 'aria-hidden': 'true' }, SYMBOLS[kind]),
          html('time', { datetime: new Date(at).toISOString() }, clock.format(at)),
          html('span', { class: 'what' })
        ),
      (element, event) => setText(element.children[2], describeEvent(event, peers))
    )
    const last = events.at(-1)?.seq ?? 0
    // Events from before the page was opened are not announced.
    const announced = this.#announced ?? last
    const news = events.filter(({ seq, kind }) => seq > announced && ANNOUNCED.includes(kind))
    this.#announced = last
    if (news.length > 0) setText(this.#announcer, news.map(event => describeEvent(event, peers)).join('. '))
  }
}
