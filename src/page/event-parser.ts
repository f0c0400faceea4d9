/**
 * Parses server-sent events from chunks of text (WHATWG HTML, section 9.2.6). The page reads them from `fetch` instead of an
 * `EventSource`, which cannot send a token.
 */

export interface ServerEvent {
  readonly event: string
  readonly data: string
}

export class EventParser {
  /** Id of the last event that had one. */
  lastId = ''
  /** Reconnection time requested by the server, in milliseconds. */
  retry: number | undefined
  #rest = ''
  #event = ''
  #data: string[] = []

  /** Discards an incomplete event of a broken stream. */
  reset(): void {
    this.#rest = ''
    this.#event = ''
    this.#data = []
  }

  /** @returns the events that the text completes */
  push(text: string): ServerEvent[] {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() as string
    return lines.flatMap(line => this.#line(line.endsWith('\r') ? line.slice(0, -1) : line))
  }

  #line(line: string): ServerEvent[] {
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#data.push(value)
    else if (field === 'event') this.#event = value
    else if (field === 'id' && !value.includes('\0')) this.lastId = value
    else if (field === 'retry' && /^\d+$/.test(value)) this.retry = Number(value)
    return []
  }

  #dispatch(): ServerEvent[] {
    const data = this.#data.join('\n')
    const event = this.#event || 'message'
    this.#event = ''
    this.#data = []
    return data === '' ? [] : [{ event, data }]
  }
}
