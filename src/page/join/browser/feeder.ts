/**
 * Gives rows to the peer at a rate. It runs with each status of the peer, which the learner's thread sends four times a second also
 * when the tab is hidden and its timers stand still.
 */
import type { Peer } from '../../../browser/index.js'
import { RowReader, type Rows } from '../rows.js'

/** Rows that may be due at once, in seconds of the rate: less after a pause of the tab. */
const BURST_S = 2
/** If none of so many first rows fits the model, the source is a wrong one. */
const TRIED_ROWS = 32

export interface Fed {
  readonly learned: number
  readonly refused: number
  /** Why the last row was refused. */
  readonly reason?: string
  /** Whether there are no further rows. */
  readonly ended: boolean
  /** Why the source as a whole is refused. */
  readonly problem?: string
}

export class Feeder {
  readonly #peer: Peer
  readonly #rows: AsyncIterator<Rows>
  readonly #rate: number
  readonly #onChange: (fed: Fed) => void
  readonly #run = () => void this.#feed()
  #fed: Fed = { learned: 0, refused: 0, ended: false }
  #due = 0
  #at = performance.now()
  #isBusy = false

  /** @param rate rows a second */
  constructor(peer: Peer, rows: AsyncIterable<Rows>, rate: number, onChange: (fed: Fed) => void) {
    this.#peer = peer
    this.#rows = rows[Symbol.asyncIterator]()
    this.#rate = rate
    this.#onChange = onChange
    peer.on('status', this.#run)
    this.#run()
  }

  stop(): void {
    this.#peer.off('status', this.#run)
    void this.#rows.return?.()
  }

  async #feed(): Promise<void> {
    const now = performance.now()
    this.#due = Math.min(BURST_S * this.#rate, this.#due + (this.#rate * (now - this.#at)) / 1000)
    this.#at = now
    if (this.#isBusy || this.#fed.ended) return
    this.#isBusy = true
    try {
      while (this.#due >= 0) {
        const next = await this.#rows.next()
        if (next.done) {
          this.#checkFit(1)
          this.#note({ ended: true })
          return
        }
        this.#due -= next.value.count
        await this.#learn(next.value)
      }
    } catch (error) {
      this.#note({ ended: true, problem: (error as Error).message })
      this.stop()
    } finally {
      this.#isBusy = false
    }
  }

  /** Learns rows. If one is malformed, none of them is learned, so they are tried one by one. */
  async #learn(rows: Rows): Promise<void> {
    try {
      await this.#request(rows)
      this.#note({ learned: this.#fed.learned + rows.count })
    } catch (error) {
      if (rows.count > 1) for (const row of singly(rows)) await this.#learn(row)
      else {
        this.#fed = { ...this.#fed, refused: this.#fed.refused + 1, reason: (error as Error).message }
        this.#checkFit(TRIED_ROWS)
        this.#note({})
      }
    }
  }

  /** @throws Error if no row fits, of that many or more */
  #checkFit(rows: number): void {
    const { learned, refused, reason = '' } = this.#fed
    if (learned > 0 || refused < rows) return
    const tried = refused === 1 ? 'the row does not fit' : `none of the first ${refused} rows fits`
    throw new Error(
      `${tried} what this network learns: choose other rows. The reason is: ${reason.replace(/^request: /, '')}`
    )
  }

  #request({ format, text }: Rows): Promise<unknown> {
    return this.#peer.request({ action: 'learn', format, body: new TextEncoder().encode(text) })
  }

  #note(change: Partial<Fed>): void {
    this.#fed = { ...this.#fed, ...change }
    this.#onChange(this.#fed)
  }
}

/** Each row on its own. */
function singly({ format, text }: Rows): Rows[] {
  const reader = new RowReader(1, format)
  return [...reader.push(text), ...reader.end()]
}
