/** What the socket of a program says of it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kinds } from '../../../src/program/messages.js'
import { ProgramServer } from '../../../src/program/program-server.js'

describe('the socket of a program', () => {
  it('says that a program is missing, or silent although it has inputs', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'admb-socket-'))
    const server = await ProgramServer.listen(join(folder, 's'))
    const socket = connect(join(folder, 's'))
    const send = (kind: number, content: Buffer<ArrayBufferLike> = Buffer.alloc(0)) => {
      const head = Buffer.alloc(5, kind)
      head.writeUInt32LE(content.length + 1)
      socket.write(Buffer.concat([head, content]))
    }
    try {
      assert.match(server.problem() ?? '', /no program computes gradients/)
      send(
        kinds.join,
        Buffer.from('{"version": 1, "name": "a test", "memory": "m", "blocks": [{"name": "w", "length": 1}]}')
      )
      await server.joined()
      const kindsReceived: number[] = []
      const received = (kind: number) =>
        new Promise<void>(resolve =>
          server.attach({
            joined: () => undefined,
            receive: each => {
              kindsReceived.push(each)
              if (each === kind) resolve()
            },
            lost: () => undefined
          })
        )
      const later = () => Date.now() + 70_000
      assert.equal(server.problem(), undefined)
      assert.match(server.problem(later()) ?? '', /a test has sent no gradients for [67]\d s/)
      const bye = received(kinds.bye)
      send(kinds.bye)
      await bye
      assert.equal(server.problem(later()), undefined)
      const add = received(kinds.add)
      send(kinds.add, Buffer.alloc(25))
      await add
      assert.match(server.problem(later()) ?? '', /has sent no gradients/)
      assert.deepEqual(kindsReceived, [kinds.bye, kinds.add])
    } finally {
      socket.destroy()
      server.close()
      rmSync(folder, { recursive: true })
    }
  })
})
