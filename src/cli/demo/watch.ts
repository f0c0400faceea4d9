/** The demo's page: a view that receives the statuses of all peers, also during a partition, and the results without a network. */
import type { HttpServer } from '../../server/index.js'
import type { NetworkStatus, NetworkView, Reference } from '../../view/index.js'
import { colour, formatMean, formatNumber } from '../output/output.js'
import { type HttpAddress, listenAt } from '../peer/http.js'
import type { Cluster } from './cluster.js'

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

const PALETTE = [colour.green, colour.yellow, colour.magenta, colour.cyan, colour.blue]

export class Table {
  #lines = 0

  /** @param groups peers that can reach each other */
  draw(cluster: Cluster, groups: readonly (readonly number[])[], news: string): void {
    if (process.stdout.isTTY !== true) return
    const names = [...new Set(cluster.peers.map(peer => peer?.predictor.digest))]
    const rows = cluster.peers.map((peer, place) => {
      const side = groups.length > 1 ? ` side ${groups.findIndex(group => group.includes(place)) + 1}` : ''
      if (!cluster.isUp(place)) return `  ${place + 1}  ${colour.red('killed')}`
      if (peer === undefined) return `  ${place + 1}  starting`
      const { inputs, updates, averageLoss, accuracy = 0, neighbours, adopted } = peer
      const links = neighbours.map(id => cluster.places.findIndex(other => other.id === id) + 1).sort()
      const paint = PALETTE[names.indexOf(peer.predictor.digest) % PALETTE.length]
      return [
        `  ${place + 1}`,
        formatNumber(inputs).padStart(8),
        paint(formatNumber(updates).padStart(8)),
        formatMean(averageLoss, inputs, 4).padStart(8),
        `${(100 * accuracy).toFixed(1)} %`.padStart(9),
        formatNumber(adopted).padStart(8),
        `  ${links.join(' ') || '-'}${side}`
      ].join('')
    })
    const head = colour.bold('peer  inputs updates    loss accuracy adopted  linked with')
    this.#paint([head, ...rows, '', news])
  }

  #paint(lines: readonly string[]): void {
    const up = this.#lines > 0 ? `\x1b[${this.#lines}A` : ''
    process.stdout.write(up + lines.map(line => `\x1b[2K${line}\n`).join(''))
    this.#lines = lines.length
  }
}
