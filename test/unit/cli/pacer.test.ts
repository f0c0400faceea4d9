/** The pace of the demo's streams. */
import assert from 'node:assert/strict'
import { inputsPerUpdate } from '../../../src/cli/demo/stage.js'

describe("the demo's pace", () => {
  const peer = { batch: 128, ended: false }
  const five = [peer, peer, peer, peer, peer]

  it('divides a batch among the peers that can reach each other, and allows a few gradients more', () => {
    assert.deepEqual(inputsPerUpdate(five, [[0, 1, 2, 3, 4]]), [26, 26, 26, 26, 26])
    assert.deepEqual(
      inputsPerUpdate(five, [
        [0, 1],
        [2, 3, 4]
      ]),
      [65, 65, 43, 43, 43]
    )
  })

  it('leaves out peers that do not learn, and those whose stream has ended', () => {
    const some = [peer, undefined, { ...peer, ended: true }, peer, peer]
    assert.deepEqual(inputsPerUpdate(some, [[0, 1, 2, 3, 4]]), [43, 0, 0, 43, 43])
    assert.deepEqual(inputsPerUpdate([undefined, undefined], [[0, 1]]), [0, 0])
  })
})
