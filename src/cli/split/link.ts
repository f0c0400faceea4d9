/** Sends blocks to a peer's `POST /learn`, and says of each attempt what it means for the block. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { NoPeerError, refusalIn, TokenRefusedError } from '../peer/http-client.js'

/** After this time without an answer a block is in doubt, and is sent again. */
const ANSWER_MS = 60_000
/** Codes of answers of a peer that has accepted nothing of the request. */
const BUSY = new Set(['ERR_UNAVAILABLE', 'ERR_RATE_LIMIT', 'ERR_TIMEOUT', 'ERR_NOT_READY', 'ERR_PRIVACY_SPENT'])
const REJECTED = new Set([400, 410, 413, 422])
const OTHER = new Set([404, 405, 415, 421, 501])

/** What became of a block. */
export type Outcome =
  | { readonly kind: 'learned' }
  /** The peer has learned nothing of it. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The peer may have learned it. */
  | { readonly kind: 'lost'; readonly reason: string }
  /** Not all of it can be learned, and nothing of it is. */
  | { readonly kind: 'rejected'; readonly reason: string }

interface LinkOptions {
  readonly token: string | undefined
  readonly ca: Buffer | undefined
  /** Content type of the blocks. */
  readonly type: string
}

export class Link {
  readonly url: URL
  readonly #options: LinkOptions
  readonly #agent: HttpAgent

  /** @param url of `/learn` */
  constructor(url: URL, options: LinkOptions) {
    this.url = url
    this.#options = options
    this.#agent = url.protocol === 'https:' ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true })
  }

  /** @throws NoPeerError, TokenRefusedError if the peer can never learn blocks */
  async send(key: string, body: Uint8Array): Promise<Outcome> {
    const attempt = { isConnected: false }
    let answer: IncomingMessage
    let content: string
    try {
      answer = await this.#post(key, body, attempt)
      content = await text(answer)
    } catch (error) {
      const { name, code, message } = error as NodeJS.ErrnoException
      const reason = name === 'AbortError' ? `no answer for ${ANSWER_MS / 1000} s` : (code ?? message)
      return { kind: attempt.isConnected ? 'lost' : 'refused', reason }
    }
    const { statusCode: status = 0 } = answer
    if (status === 200) return { kind: 'learned' }
    const { line: reason, code } = refusalIn(content)
    if (status === 401 || status === 403) {
      throw new TokenRefusedError(`the peer at ${this.url.origin} refuses: ${reason}: give its --http-token-file FILE`)
    }
    if (OTHER.has(status)) throw new NoPeerError(`the peer at ${this.url.origin} answers ${status}: ${reason}`)
    if (BUSY.has(code)) return { kind: 'refused', reason }
    return { kind: REJECTED.has(status) ? 'rejected' : 'lost', reason }
  }

  close(): void {
    this.#agent.destroy()
  }

  #post(key: string, body: Uint8Array, attempt: { isConnected: boolean }): Promise<IncomingMessage> {
    const { token, ca, type } = this.#options
    const isSecure = this.url.protocol === 'https:'
    return new Promise((resolve, reject) => {
      const request = (isSecure ? httpsRequest : httpRequest)(this.url, {
        method: 'POST',
        agent: this.#agent,
        ca,
        signal: AbortSignal.timeout(ANSWER_MS),
        headers: {
          'content-type': type,
          'content-length': body.length,
          'idempotency-key': `"${key}"`,
          ...(token !== undefined && { authorization: `Bearer ${token}` })
        }
      })
      request.once('response', resolve).once('error', reject)
      request.once('socket', socket => {
        // Until then, nothing of the request has left.
        const connected = () => {
          attempt.isConnected = true
        }
        if (socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', connected)
        else connected()
      })
      request.end(body)
    })
  }
}
