/** The demo's page: a view that receives the statuses of all peers, also during a partition, and the results without a network. */
import type { HttpServer } from '../../server/index.js'
import type { NetworkStatus, NetworkView, Reference } from '../../view/index.js'
import { type HttpAddress, listenAt } from '../peer/http.js'

/** Interval of the view's clock, in milliseconds. */
const TICK_MS = 500

export class Watch {
  readonly url: string
  readonly #view: NetworkView
  readonly #server: HttpServer
  readonly #ticking: NodeJS.Timeout

  /** @throws HttpListenError */
  static async start(where: Exclude<HttpAddress, 'off'>): Promise<Watch> {
    const [{ servePage }, { NetworkView }] = await Promise.all([
      import('../../server/index.js'),
      import('../../view/index.js')
    ])
    const view = new NetworkView()
    return new Watch(view, await listenAt(where, at => servePage({ view, ...at })))
  }

  private constructor(view: NetworkView, server: HttpServer) {
    this.url = server.url
    this.#view = view
    this.#server = server
    this.#ticking = setInterval(() => view.tick(Date.now()), TICK_MS)
  }

  readonly receive = (id: string, status: NetworkStatus): void => this.#view.receive(id, status, Date.now())

  /** A peer was killed, as its neighbours notice. */
  lost(id: string): void {
    this.#view.suspect(id, Date.now())
  }

  setReferences(references: readonly Reference[]): void {
    this.#view.setReferences(references)
    this.#view.tick(Date.now())
  }

  async stop(): Promise<void> {
    clearInterval(this.#ticking)
    await this.#server.close()
  }
}
