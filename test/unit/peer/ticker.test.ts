import assert from 'node:assert/strict'
import { Ticker, type Timers } from '../../../src/peer/ticker.js'

/** Timers in virtual time. */
class VirtualTimers implements Timers {
  #now = 0
  readonly #due = new Map<number, { readonly at: number; readonly callback: () => void }>()
  #last = 0

  setTimeout(callback: () => void, ms: number): ReturnType<typeof setTimeout> {
    this.#due.set(++this.#last, { at: this.#now + ms, callback })
    return this.#last as unknown as ReturnType<typeof setTimeout>
  }

  clearTimeout(timer: ReturnType<typeof setTimeout>): void {
    this.#due.delete(Number(timer))
  }

  pass(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const [first] = [...this.#due].sort(([, a], [, b]) => a.at - b.at)
      if (first === undefined || first[1].at > end) break
      this.#due.delete(first[0])
      this.#now = first[1].at
      first[1].callback()
    }
    this.#now = end
  }
}

describe('ticks of the learner thread', () => {
  let timers: VirtualTimers
  let ticks: number
  let ticker: Ticker

  const start = (period: number) => {
    timers = new VirtualTimers()
    ticks = 0
    ticker = new Ticker(period, () => ticks++, timers)
  }
  const ticksIn = (ms: number): number => {
    const before = ticks
    timers.pass(ms)
    return ticks - before
  }

  it('come in each period as long as something happens', () => {
    start(100)
    for (let second = 0; second < 120; second++) {
      assert.equal(ticksIn(1000), 10)
      ticker.wake()
    }
  })

  it('become fewer when nothing happens, and come in each period again after an event', () => {
    start(100)
    assert.equal(ticksIn(25_600), 256)
    assert.equal(ticksIn(10_000), 20)
    ticker.wake()
    assert.equal(ticksIn(1000), 10)
  })

  it('do not come more often than in each period', () => {
    start(2000)
    assert.equal(ticksIn(2_000_000), 1000)
  })

  it('end', () => {
    start(100)
    ticker.stop()
    assert.equal(ticksIn(1000), 0)
  })

  it('do not come again after their end', () => {
    start(100)
    ticksIn(30_000)
    ticker.stop()
    ticker.wake()
    assert.equal(ticksIn(1000), 0)
  })

  it('end if one of them ends them', () => {
    timers = new VirtualTimers()
    let stopped = 0
    const stopping = new Ticker(
      100,
      () => {
        stopped++
        stopping.stop()
      },
      timers
    )
    timers.pass(1000)
    assert.equal(stopped, 1)
  })
})
