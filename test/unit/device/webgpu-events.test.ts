/** Event processing for code that schedules its callbacks by the global setImmediate, as Dawn does. */
import assert from 'node:assert/strict'
import { BackendError } from '../../../src/device/index.js'
import { DawnEvents } from '../../../src/device/webgpu-backend.js'

/** Is done when its callback, which reschedules itself, has run a given number of times. */
class Job {
  isDone = false

  constructor(private left: number) {}

  begin(): void {
    setImmediate(() => {
      this.left--
      if (this.left > 0) this.begin()
      else this.isDone = true
    })
  }
}

describe('events of Dawn', () => {
  it('complete while the thread is blocked', () => {
    const events = new DawnEvents()
    for (const looks of [1, 3, 100]) {
      const job = new Job(looks)
      events.call(() => job.begin())
      assert.equal(job.isDone, false)
      events.wait(() => !job.isDone)
    }
  })

  it('of promises complete while the event loop runs', async () => {
    const events = new DawnEvents()
    const job = new Job(30)
    const done = await events.waitAsync(
      () =>
        new Promise<string>(resolve => {
          const look = () => {
            if (job.isDone) resolve('done')
            else setImmediate(look)
          }
          job.begin()
          look()
        })
    )
    assert.equal(done, 'done')
    await assert.rejects(
      events.waitAsync(() => Promise.reject(new Error('no adapter'))),
      /no adapter/
    )
  })

  it('cannot be awaited if none is pending', () => {
    assert.throws(() => new DawnEvents().wait(() => true), BackendError)
  })

  it('do not affect other users of setImmediate', async () => {
    const events = new DawnEvents()
    const before = globalThis.setImmediate
    assert.throws(() =>
      events.call(() => {
        throw new Error('Dawn said no')
      })
    )
    assert.equal(globalThis.setImmediate, before)
    await new Promise(resolve => setImmediate(resolve))
  })
})
