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
  let wakeUps: number
  let ticker: Ticker

  const start = (period: number) => {
    timers = new VirtualTimers()
    ticks = 0
    wakeUps = 0
    const tick = (count: number) => {
      ticks += count
      wakeUps++
    }
    ticker = new Ticker(period, tick, timers)
  }
  const ticksIn = (ms: number): number => {
    const before = ticks
    timers.pass(ms)
    return ticks - before
  }

  it('come in each period as long as something happens', () => {
    start(100)
    for (let event = 0; event < 120; event++) {
      assert.equal(ticksIn(500), 5)
      ticker.wake()
    }
    assert.equal(wakeUps, 600)
  })

  it('come together when nothing happens, and one by one again after an event', () => {
    start(100)
    assert.equal(ticksIn(800), 8)
    assert.equal(wakeUps, 8)
    assert.equal(ticksIn(10_000), 100)
    assert.equal(wakeUps, 8 + 20)
    timers.pass(300)
    ticker.wake()
    assert.equal(ticksIn(700), 7)
    assert.equal(wakeUps, 8 + 20 + 7)
  })

  it('come one by one if the period is long', () => {
    start(300)
    assert.equal(ticksIn(30_000), 100)
    assert.equal(wakeUps, 100)
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
    timers.pass(30_000)
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
