/** Deals the blocks of an input to peers: reads as fast as they learn, sends what the dealer says, and tells it what became of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RawBlock, RawInput } from '../../data/index.js'
import { formatRows } from '../output/output.js'
import { Dealer, type DealerState, type Delivery } from './dealer.js'
import type { Link, Outcome } from './link.js'

/** Pauses before a peer is tried again: the first one, which doubles, and the longest, in milliseconds. */
const FIRST_PAUSE_MS = 200
const MAX_PAUSE_MS = 5000

/** What a peer has got. */
export interface PeerCount {
  readonly url: string
  readonly rows: number
  readonly blocks: number
  readonly inDoubt: number
}

export interface SplitterOptions {
  readonly input: RawInput
  readonly links: readonly Link[]
  /** The start of each peer's keys. */
  readonly names: readonly string[]
  /** Where the source continues, and what was dealt before. */
  readonly resumed?: { readonly dealer: DealerState<RawBlock>; readonly from: RawBlock['place'] }
  /** Stores what is dealt: durable when it resolves. */
  readonly save?: (state: DealerState<RawBlock>, from: RawBlock['place']) => Promise<void>
  /** Called with a row that no peer can learn. */
  readonly onSkipped: (row: string, reason: string) => void
  /** A line for people. */
  readonly say: (line: string) => void
  /** Called after each answer. */
  readonly onProgress: () => void
  /** Ends the reading of the source. What is on the way is finished. */
  readonly signal: AbortSignal
}

export class Splitter {
  readonly #options: SplitterOptions
  readonly #dealer: Dealer<RawBlock>
  readonly #counts: { rows: number; blocks: number }[]
  /** The last pause of each peer that has failed since it learned. */
  readonly #pauses = new Map<number, number>()
  readonly #ended = new AbortController()
  #next: RawBlock['place']
  #skipped = 0
  #hasEnded = false
  #failure: unknown
  #wake: () => void = () => undefined

  constructor(options: SplitterOptions) {
    const { links, resumed } = options
    this.#options = options
    this.#dealer = new Dealer(links.length, resumed?.dealer)
    this.#counts = links.map(() => ({ rows: 0, blocks: 0 }))
    this.#next = resumed?.from
  }

  /** Rows that no peer could learn. */
  get skipped(): number {
    return this.#skipped
  }

  /** Rows that were read, and that no peer has accepted. */
  get unsent(): number {
    return rowsOf(this.#dealer.waiting)
  }

  get peers(): readonly PeerCount[] {
    const doubtful = this.#dealer.open.filter(({ isDoubtful, isSent }) => isDoubtful && !isSent)
    return this.#options.links.map(({ url }, peer) => ({
      url: url.origin,
      ...this.#counts[peer],
      inDoubt: rowsOf(doubtful.filter(one => one.peer === peer).map(({ block }) => block))
    }))
  }

  /** Resolves when everything is learned or, after the signal, when nothing is on the way any more. @throws errors of the input and of links */
  async run(): Promise<void> {
    const { input, signal, save } = this.#options
    signal.addEventListener('abort', () => this.#wake(), { once: true })
    const blocks = input.blocks(this.#next)
    let isReading = false
    let isUnsaved = false
    const read = async () => {
      try {
        const { value, done } = await blocks.next()
        if (done) this.#hasEnded = true
        else if (!signal.aborted) {
          this.#dealer.add(value)
          this.#next = value.place && { ...value.place, skip: value.place.skip + value.lines.length }
        }
      } catch (error) {
        if (!signal.aborted) this.#failure ??= error
      }
      isReading = false
      this.#wake()
    }
    try {
      for (;;) {
        const changed = new Promise<void>(resolve => {
          this.#wake = resolve
        })
        const isStopping = signal.aborted || this.#failure !== undefined
        if (!isStopping) {
          const deliveries = this.#deliveries()
          // What is on the way is in the state before it is sent; what is learned, when the splitter waits for more.
          const isIdle: boolean = isUnsaved && this.#dealer.isEmpty
          if (save && (deliveries.length > 0 || isIdle)) await save(this.#dealer.state, this.#next)
          isUnsaved = deliveries.length > 0 || (isUnsaved && !isIdle)
          for (const delivery of deliveries) void this.#send(delivery)
          if (this.#dealer.wantsBlock && !isReading && !this.#hasEnded) {
            isReading = true
            void read()
          }
        }
        const isComplete = this.#hasEnded && this.#dealer.isEmpty
        if (isComplete || (isStopping && !this.#dealer.open.some(({ isSent }) => isSent))) break
        await changed
      }
    } finally {
      this.#ended.abort()
      await save?.(this.#dealer.state, this.#next)
      if (!isReading) await blocks.return(undefined)
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  #deliveries(): Delivery<RawBlock>[] {
    const found: Delivery<RawBlock>[] = []
    for (let next = this.#dealer.take(); next !== undefined; next = this.#dealer.take()) found.push(next)
    return found
  }

  async #send(delivery: Delivery<RawBlock>): Promise<void> {
    const { input, links, names, onProgress } = this.#options
    const { peer, number, block } = delivery
    const { header } = input
    const body = Buffer.concat(header === undefined ? block.lines : [header, ...block.lines])
    try {
      this.#settle(delivery, await links[peer].send(`split:${names[peer]}:${number}`, body))
    } catch (error) {
      this.#dealer.refused(delivery)
      this.#failure ??= error
    }
    onProgress()
    this.#wake()
  }

  #settle(delivery: Delivery<RawBlock>, outcome: Outcome): void {
    const { peer, block } = delivery
    if (outcome.kind === 'learned') {
      this.#dealer.acknowledged(delivery)
      const count = this.#counts[peer]
      count.rows += block.lines.length
      count.blocks++
      if (!this.#dealer.isAway(peer) && this.#pauses.delete(peer)) {
        this.#options.say(`${this.#options.links[peer].url.origin} learns again`)
      }
    } else if (outcome.kind === 'rejected') this.#reject(delivery, outcome.reason)
    else {
      const wasAway = this.#dealer.isAway(peer)
      this.#dealer[outcome.kind](delivery)
      if (!wasAway) this.#pause(peer, outcome.reason)
    }
  }

  /** Tries a peer again after a while. Several blocks may be on the way when it fails. */
  #pause(peer: number, reason: string): void {
    const before = this.#pauses.get(peer)
    const pause = before === undefined ? FIRST_PAUSE_MS : Math.min(MAX_PAUSE_MS, 2 * before)
    this.#pauses.set(peer, pause)
    void sleep(pause, undefined, { signal: this.#ended.signal }).then(
      () => {
        if (before === undefined) this.#options.say(this.#failureOf(peer, reason))
        this.#dealer.returned(peer)
        this.#wake()
      },
      () => undefined
    )
  }

  #failureOf(peer: number, reason: string): string {
    const { url, inDoubt } = this.peers[peer]
    const waits = inDoubt > 0 ? `: ${formatRows(inDoubt)} that it may have learned must wait for it` : ''
    return `${url} does not learn (${reason})${waits}`
  }

  /** Divides a block until the rows are found that no peer can learn. */
  #reject(delivery: Delivery<RawBlock>, reason: string): void {
    const { lines, place } = delivery.block
    if (lines.length === 1) {
      this.#dealer.rejected(delivery, [])
      this.#skipped++
      this.#options.onSkipped(Buffer.from(lines[0]).toString('utf8').trim(), reason)
      return
    }
    const half = lines.length >> 1
    this.#dealer.rejected(delivery, [
      { lines: lines.slice(0, half), place },
      { lines: lines.slice(half), place: place && { ...place, skip: place.skip + half } }
    ])
  }
}

function rowsOf(blocks: readonly RawBlock[]): number {
  return blocks.reduce((sum, { lines }) => sum + lines.length, 0)
}
