/**
 * Server-sent events out of a text that comes in pieces (WHATWG HTML, section 9.2.6). The page reads them from `fetch` and not from an
 * `EventSource`, which cannot send a token.
 */

export interface ServerEvent {
  readonly event: string
  readonly data: string
}

export class EventParser {
  /** Of the last event that had one. */
  lastId = ''
  /** What the server asks a reader to wait before it comes back, in milliseconds. */
  retry: number | undefined
  #rest = ''
  #event = ''
  #data: string[] = []

  /** Forgets the piece of an event that a broken stream has left. */
  reset(): void {
    this.#rest = ''
    this.#event = ''
    this.#data = []
  }

  /** @returns the events that are complete now */
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
