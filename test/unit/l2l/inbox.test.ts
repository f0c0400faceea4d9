import assert from 'node:assert/strict'
import { Inbox, type WorkerMessage } from '../../../src/l2l/workers/worker-handle.js'

const DONE = { kind: 'done', loss: 1, hits: 0, ms: 1 } as WorkerMessage

describe('Inbox', () => {
  it('keeps a message that follows the activity for which the thread waits', () => {
    const cells = new Int32Array(new SharedArrayBuffer(4))
    let gradients = 0
    // The worker finishes its last gradient and its task between the check of the condition and that of the messages.
    const inbox = new Inbox(cells, 0, () => {
      if (gradients > 0) return undefined
      gradients++
      return DONE
    })
    assert.equal(
      inbox.waitUntil(() => gradients > 0),
      undefined
    )
    assert.equal(inbox.receive(), DONE)
  })

  it('returns a message that comes instead of the activity', () => {
    const messages = [DONE]
    const inbox = new Inbox(new Int32Array(new SharedArrayBuffer(4)), 0, () => messages.pop())
    assert.equal(
      inbox.waitUntil(() => false),
      DONE
    )
  })
})
