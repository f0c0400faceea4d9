/** Messages between the stages of a pipeline over a line: whole after any number of parts, and refused if they are malformed. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import { MailCarrier, type MailPart } from '../../../src/l2l/group/mail.js'
import { cellCount, MAIL, type Mail, type StagePorts } from '../../../src/l2l/workers/worker-handle.js'

describe('messages between stages over a line', () => {
  const open: StagePorts[] = []
  afterEach(() => {
    for (const { above, below } of open.splice(0)) {
      above.close()
      below.close()
    }
  })

  /** A carrier, with the other ends of its ports and the parts that it sends. */
  function carrier() {
    const [above, below] = [new MessageChannel(), new MessageChannel()]
    const cells = new Int32Array(new SharedArrayBuffer(4 * cellCount(1)))
    const sent: [MailPart, Uint8Array][] = []
    const mail = new MailCarrier(cells, (part, [bytes]) => sent.push([JSON.parse(JSON.stringify(part)), bytes.slice()]))
    mail.connect({ above: above.port1, below: below.port1 })
    const ends = { above: above.port2, below: below.port2 }
    open.push(ends)
    return { mail, cells, sent, ends }
  }

  it('arrive whole, in parts that a line admits for small networks', async () => {
    for (const [side, length] of [
      ['above', 1],
      ['below', 300_001]
    ] as const) {
      const [from, to] = [carrier(), carrier()]
      const values = Float32Array.from({ length }, (_, i) => i / 3)
      const message: Mail = { attempt: 3, key: 'forward/1/0', values, shape: [length, 1], dtype: 'float32' }
      from.ends[side].postMessage(message)
      while (from.sent.reduce((sum, [, bytes]) => sum + bytes.length, 0) < values.byteLength) {
        await new Promise(resolve => setImmediate(resolve))
      }
      equal(from.sent.length, length === 1 ? 1 : 3)
      ok(from.sent.every(([, bytes]) => bytes.length <= 1 << 19))
      const arrived = once(to.ends[side], 'message')
      for (const [part, bytes] of from.sent) ok(to.mail.deliver(part, bytes))
      deepEqual(await arrived, [message])
      equal(to.cells[MAIL], 1)
      from.mail.close()
      to.mail.close()
    }
  })

  it('are refused if a part does not fit', () => {
    const { mail, cells } = carrier()
    const part: MailPart = {
      kind: 'mail',
      side: 'above',
      at: 0,
      attempt: 1,
      key: 'forward/1/0',
      shape: [2, 3],
      dtype: 'float32'
    }
    const bytes = (length: number) => new Uint8Array(length)
    for (const [other, length] of [
      [{ shape: [2, -3] }, 24],
      [{ shape: [2, 0.3] }, 24],
      [{ shape: 'long' as unknown as number[] }, 24],
      [{ shape: [2 ** 20, 2 ** 20] }, 24],
      [{ at: 8 }, 16],
      [{ at: 0.5 }, 8],
      [{}, 28]
    ] as [Partial<MailPart>, number][]) {
      equal(mail.deliver({ ...part, ...other }, bytes(length)), false, JSON.stringify(other))
    }
    ok(mail.deliver(part, bytes(8)))
    equal(mail.deliver({ ...part, at: 16, shape: [2, 4] }, bytes(16)), false)
    equal(cells[MAIL], 0)
    mail.close()
  })
})
