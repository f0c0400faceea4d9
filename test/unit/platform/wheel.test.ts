import assert from 'node:assert/strict'
import { periodically, untilTurn, WHEEL_MS } from '#platform'

describe('periodic work', () => {
  const { setInterval: startTimer, clearInterval: stopTimer } = globalThis
  const monotonic = performance.now.bind(performance)
  let timers: Map<number, { readonly ms: number; readonly run: () => void }>
  let now: number

  beforeEach(() => {
    timers = new Map()
    now = 1000
    let last = 0
    globalThis.setInterval = ((run: () => void, ms: number) => {
      timers.set(++last, { ms, run })
      return last
    }) as unknown as typeof setInterval
    globalThis.clearInterval = ((timer: number) => timers.delete(timer)) as unknown as typeof clearInterval
    performance.now = () => now
  })
  afterEach(() => {
    globalThis.setInterval = startTimer
    globalThis.clearInterval = stopTimer
    performance.now = monotonic
  })

  const turn = () => {
    now += WHEEL_MS
    for (const { run } of [...timers.values()]) run()
  }

  it('of all intervals is done in the same wake-ups', () => {
    const calls = { often: 0, rarely: 0 }
    const stops = [periodically(WHEEL_MS, () => calls.often++), periodically(4 * WHEEL_MS, () => calls.rarely++)]
    assert.equal(timers.size, 1)
    for (let i = 0; i < 40; i++) turn()
    assert.deepEqual(calls, { often: 40, rarely: 10 })
    stops[0]()
    for (let i = 0; i < 40; i++) turn()
    assert.deepEqual(calls, { often: 40, rarely: 20 })
    stops[1]()
    assert.equal(timers.size, 0)
  })

  it('that is frequent has its own timer', () => {
    const stop = periodically(WHEEL_MS / 5, () => undefined)
    assert.deepEqual(
      [...timers.values()].map(({ ms }) => ms),
      [WHEEL_MS / 5]
    )
    stop()
    assert.equal(timers.size, 0)
  })

  it('is not done after it has ended, even by other work in the same wake-up', () => {
    let calls = 0
    const stops: (() => void)[] = []
    stops.push(
      periodically(WHEEL_MS, () => stops[1]()),
      periodically(WHEEL_MS, () => calls++)
    )
    turn()
    assert.equal(calls, 0)
    stops[0]()
  })

  it('is announced', () => {
    const stop = periodically(WHEEL_MS, () => undefined)
    turn()
    now += WHEEL_MS / 5
    assert.equal(untilTurn(0), (4 * WHEEL_MS) / 5)
    assert.equal(untilTurn(WHEEL_MS), (9 * WHEEL_MS) / 5)
    assert.equal(untilTurn(3 * WHEEL_MS), (19 * WHEEL_MS) / 5)
    stop()
  })
})
