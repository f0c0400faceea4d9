/** Frames, stored predictors and announcements of another version are refused, with both versions in the message. */
import assert from 'node:assert/strict'
import { AdmbNode, decodeHead, encodeHead, isFragment } from '../../../src/admb/index.js'
import { Writer } from '../../../src/admb/wire/bytes.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const options = { ...toy, layout: toyLayout(2), initial: toyStart(2), incarnation: 1, batch: 1, carry: 9 }

function learned(self: string, fragmentBytes?: number): AdmbNode {
  const node = new AdmbNode({ ...options, self, fragmentBytes })
  addToyGradient(node.accumulator, 0)
  node.added(1)
  return node
}

/** The bytes with another version and the checksum that belongs to them. */
function ofVersion(version: number, bytes: Uint8Array): Uint8Array {
  const out = new Writer()
  out.byte(version)
  out.raw(bytes.subarray(1, -4))
  return out.finish()
}

describe('other versions', () => {
  it('of frames and fragments are refused', () => {
    for (const fragmentBytes of [undefined, 0]) {
      const sender = learned('a', fragmentBytes)
      const receiver = new AdmbNode({ ...options, self: 'b' })
      for (const node of [sender, receiver]) node.connect(1, 1, 'neighbour')
      receiver.receive(1, sender.frame(1) as Uint8Array)
      sender.receive(1, receiver.frame(1) as Uint8Array)
      const frame = sender.frame(1) as Uint8Array
      assert.equal(isFragment(frame), fragmentBytes === 0)
      for (const version of [0, 2, 6]) {
        receiver.receive(1, ofVersion(version, frame))
        const [effect] = receiver.takeEffects()
        assert.ok(effect?.kind === 'refused', 'it is refused')
        assert.match(effect.reason, new RegExp(`^frame version ${version}; expected 1$`))
      }
      receiver.receive(1, frame)
      assert.deepEqual(
        receiver.takeEffects().filter(({ kind }) => kind === 'refused'),
        []
      )
    }
  })

  it('of stored predictors are refused', () => {
    const saved = learned('a').storage.save()
    const fresh = () => new AdmbNode({ ...options, self: 'b' })
    fresh().restore(saved)
    for (const version of [0, 2, 5, 6]) {
      const bytes = ofVersion(version, saved)
      const refusal = { code: 'ERR_BAD_FRAME', message: `frame version ${version}; expected 1` }
      assert.throws(() => fresh().restore(bytes), refusal)
      assert.throws(() => fresh().offer(bytes, 'a'), refusal)
    }
  })

  it('of announcements by gossip are refused', () => {
    const head = encodeHead({ id: learned('a').predictor.id, addresses: [] })
    assert.throws(() => decodeHead(ofVersion(2, head)), {
      code: 'ERR_BAD_FRAME',
      message: 'head version 2; expected 1'
    })
  })
})
