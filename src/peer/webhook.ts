/** Posts events as JSON to a URL of the owner, one after another, with retries. It never delays the peer, and its queue is bounded. */
import { sleep } from '#platform'
import type { Log } from '../network/index.js'

/** Attempts to deliver one event, the wait after the first failure, which doubles, and the time for an answer, in milliseconds. */
const ATTEMPTS = 6
const FIRST_WAIT_MS = 1000
const ANSWER_MS = 10_000
/** Limit of queued events. */
const MOST_WAITING = 32

export class Webhook {
  readonly #url: string
  readonly #log: Log
  readonly #firstWait: number
  readonly #waiting: object[] = []
  readonly #stopping = new AbortController()
  #isSending = false

  /** @param firstWait milliseconds after the first failure */
  constructor(url: string, log: Log, firstWait = FIRST_WAIT_MS) {
    this.#url = url
    this.#log = log
    this.#firstWait = firstWait
  }

  /** Delivers an event later. If too many wait, it is dropped and logged. */
  post(event: object): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#log('warn', `the webhook does not keep up: an event is dropped (${MOST_WAITING} wait)`, { event })
      return
    }
    this.#waiting.push(event)
    if (!this.#isSending) void this.#sendAll()
  }

  /** Drops the queued events. */
  stop(): void {
    this.#stopping.abort()
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    for (let event = this.#waiting[0]; event !== undefined; event = this.#waiting[0]) {
      const failure = await this.#deliver(event)
      if (this.#stopping.signal.aborted) return
      this.#waiting.shift()
      if (failure !== undefined) {
        this.#log('warn', `the webhook failed ${ATTEMPTS} times, the event is dropped: ${failure}`, { event })
      }
    }
    this.#isSending = false
  }

  /** @returns why the event was not delivered */
  async #deliver(event: object): Promise<string | undefined> {
    const { signal } = this.#stopping
    for (let attempt = 1, wait = this.#firstWait; ; attempt++, wait *= 2) {
      const failure = await this.#send(event)
      if (failure === undefined || attempt === ATTEMPTS || signal.aborted) return failure
      this.#log('debug', `the webhook failed, next attempt in ${wait / 1000} s: ${failure}`, {})
      await sleep(wait, signal)
    }
  }

  async #send(event: object): Promise<string | undefined> {
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(event),
        signal: AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(ANSWER_MS)])
      })
      await response.body?.cancel()
      return response.ok ? undefined : `it answered ${response.status}`
    } catch (error) {
      const { message, cause } = error as Error
      return cause instanceof Error ? cause.message : message
    }
  }
}

/** Whether events can be posted to the URL. */
export function isWebhookUrl(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}
