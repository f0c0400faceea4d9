/** Exchanges statuses with the tree neighbours: a `StatusTree` with the codec of each edge, and requests as promises. */
import { type Answer, type OwnStatus, type Query, StatusCodec, StatusTree, type Verify } from '../view/index.js'

/** How long answers to a search are collected, and the timeout of a request for a subtree, in ms. */
const SEARCH_MS = 2000
const SUBTREE_MS = 5000
/** Number of answers after which a search ends. */
const MAX_FOUND = 20

/** Sends the bytes of a message over an edge. */
export type SendStatus = (edge: number, bytes: Uint8Array) => void

interface Request {
  readonly answers: Answer[]
  readonly limit: number
  readonly end: () => void
}

export class StatusExchange {
  readonly tree: StatusTree
  readonly #send: SendStatus
  readonly #now: () => number
  readonly #codecs = new Map<number, StatusCodec>()
  readonly #requests = new Map<number, Request>()

  constructor(own: OwnStatus, verify: Verify, send: SendStatus, now: () => number) {
    this.tree = new StatusTree(own, verify)
    this.#send = send
    this.#now = now
  }

  connect(edge: number, peer: string): void {
    this.#codecs.set(edge, new StatusCodec())
    this.tree.connect(edge, peer, this.#now())
    this.#flush()
  }

  disconnect(edge: number): void {
    this.#codecs.delete(edge)
    this.tree.disconnect(edge, this.#now())
    this.#flush()
  }

  /** Handles a message of a neighbour. @throws StatusError or Error if it is malformed */
  receive(edge: number, bytes: Uint8Array): void {
    const codec = this.#codecs.get(edge)
    if (codec === undefined) return
    this.tree.receive(edge, codec.decode(bytes), this.#now())
    this.#flush()
  }

  /** Sends what is due. */
  tick(isWatching: boolean): void {
    const now = this.#now()
    this.tree.watch(isWatching, now)
    this.tree.tick(now)
    this.#flush()
  }

  /** The peers whose id or name contains a text, other than this one. */
  search(search: string): Promise<readonly Answer[]> {
    return this.#ask({ search }, SEARCH_MS, MAX_FOUND)
  }

  /** The peers at the end of a path of tree neighbours; undefined if there is no such path. */
  async subtree(path: readonly string[]): Promise<Answer | undefined> {
    return (await this.#ask({ path: [...path] }, SUBTREE_MS, 1))[0]
  }

  stop(): void {
    for (const { end } of [...this.#requests.values()]) end()
  }

  #ask(query: Query, ms: number, limit: number): Promise<readonly Answer[]> {
    const ask = this.tree.ask(query)
    if (ask === undefined) return Promise.resolve([])
    return new Promise(resolve => {
      const answers: Answer[] = []
      const end = () => {
        clearTimeout(timer)
        this.#requests.delete(ask)
        resolve(answers)
      }
      const timer = setTimeout(end, ms)
      this.#requests.set(ask, { answers, limit, end })
      this.#flush()
    })
  }

  #flush(): void {
    for (const { edge, message } of this.tree.takeMessages()) {
      const bytes = this.#codecs.get(edge)?.encode(message)
      if (bytes === undefined) continue
      this.#send(edge, bytes)
      if (message.report) this.tree.sent(edge, bytes.length)
    }
    for (const answer of this.tree.takeAnswers()) {
      const request = this.#requests.get(answer.ask)
      request?.answers.push(answer)
      if (request && request.answers.length >= request.limit) request.end()
    }
  }
}
