/** Peers that report their statuses over the edges of a tree, in virtual time. */
import { aggregateOf } from '../../src/view/aggregate.js'
import type { NetworkStatus } from '../../src/view/index.js'
import { StatusCodec } from '../../src/view/status-message.js'
import { type OwnStatus, StatusTree } from '../../src/view/status-tree.js'
import { status } from './statuses.js'

/** One-way latency and step of time in ms. */
const LATENCY = 50
const STEP = 250

export const idOf = (node: number): string =>
  `12D3KooW${(node + 1).toString(36).replaceAll(/[0l]/g, 'z')}x${node + 1}`.replaceAll('0', 'o')

interface Edge {
  readonly to: number
  readonly id: number
  readonly codec: StatusCodec
}

interface Node {
  readonly tree: StatusTree
  readonly edges: Map<number, Edge>
  bytes: number
}

export class StatusNetwork {
  now = 1_000_000
  readonly nodes: Node[]
  #edges = 0
  #queue: { readonly at: number; readonly node: number; readonly edge: number; readonly bytes: Uint8Array }[] = []
  readonly #verify = (id: string, _text: string, signature: string) => signature.startsWith(id)

  constructor(
    count: number,
    readonly statusOf: (node: number) => Partial<NetworkStatus> = () => ({})
  ) {
    this.nodes = Array.from({ length: count }, (_, node) => ({
      tree: new StatusTree(this.own(node), this.#verify),
      edges: new Map(),
      bytes: 0
    }))
  }

  own(node: number): OwnStatus {
    const neighbours = [...(this.nodes?.[node]?.edges.values() ?? [])].map(({ to }) => idOf(to))
    const uptime = (this.now - 1_000_000) / 1000
    const own = status({ name: `peer ${node}`, uptime, neighbours, ...this.statusOf(node) })
    const row = { id: idOf(node), text: JSON.stringify(own), signature: `${idOf(node)} ${this.now}`, status: own }
    return { row, totals: aggregateOf(own, [[1, '00000001']], false) }
  }

  link(a: number, b: number): void {
    const id = ++this.#edges
    for (const [from, to] of [
      [a, b],
      [b, a]
    ]) {
      this.nodes[from].edges.set(id, { to, id, codec: new StatusCodec() })
      this.nodes[from].tree.connect(id, idOf(to), this.now)
    }
  }

  unlink(a: number, b: number): void {
    for (const edge of [...this.nodes[a].edges.values()].filter(({ to }) => to === b)) {
      for (const node of [a, b]) {
        this.nodes[node].edges.delete(edge.id)
        this.nodes[node].tree.disconnect(edge.id, this.now)
      }
    }
  }

  pass(ms: number): this {
    const end = this.now + ms
    while (this.now < end) {
      this.now += STEP
      const arrived = this.#queue.filter(({ at }) => at <= this.now)
      this.#queue = this.#queue.filter(({ at }) => at > this.now)
      for (const { node, edge, bytes } of arrived) {
        const held = this.nodes[node].edges.get(edge)
        if (held !== undefined) this.nodes[node].tree.receive(edge, held.codec.decode(bytes), this.now)
      }
      for (const [node, { tree }] of this.nodes.entries()) {
        tree.setOwn(this.own(node))
        tree.tick(this.now)
        this.#flush(node)
      }
    }
    return this
  }

  #flush(node: number): void {
    const { tree, edges } = this.nodes[node]
    for (const { edge, message } of tree.takeMessages()) {
      const held = edges.get(edge)
      if (held === undefined) continue
      const bytes = held.codec.encode(message)
      this.nodes[held.to].bytes += bytes.length
      if (message.report) tree.sent(edge, bytes.length)
      this.#queue.push({ at: this.now + LATENCY, node: held.to, edge, bytes })
    }
  }
}
