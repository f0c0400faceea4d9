/** A peer with an HTTP server in this process, and requests that `fetch` cannot send. */
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { type LearningSpec, Peer, type PeerOptions } from '../../src/peer/index.js'
import { type HttpOptions, type HttpServer, serveHttp } from '../../src/server/index.js'

export const SPEC: LearningSpec = {
  model: 'logistic',
  dimension: 4,
  rule: { name: 'adagrad' },
  averaging: { name: 'tail' },
  batch: 2,
  features: { constant: false, scale: 'none', classNames: ['no', 'yes'] }
}

export class PeerServer {
  private constructor(
    readonly peer: Peer,
    readonly server: HttpServer
  ) {}

  static async start(http: Partial<HttpOptions> = {}, options: Partial<PeerOptions> = {}): Promise<PeerServer> {
    const peer = await Peer.start({ spec: SPEC, listen: [], log: () => undefined, ...options })
    try {
      return new PeerServer(peer, await serveHttp({ peer, port: 0, ...http }))
    } catch (error) {
      await peer.stop()
      throw error
    }
  }

  get url(): string {
    return this.server.url
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  post(route: string, body: string, type = 'application/json', headers: Record<string, string> = {}) {
    return fetch(`${this.url}${route}`, { method: 'POST', body, headers: { 'content-type': type, ...headers } })
  }

  async stop(): Promise<void> {
    await this.server.close()
    await this.peer.stop()
  }
}

export interface Answer {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Sends a request with exactly these headers, including `host`. */
export function get(url: string, headers: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers }, response => {
      let text = ''
      response.on('data', part => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }))
    })
    sent.on('error', reject).end()
  })
}

/** Sends bytes and waits until the server closes the connection. @returns everything received */
export function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', part => {
      received += part
    })
    socket.on('close', () => resolve(received)).on('error', reject)
  })
}
