/** Learner loops with the keys of peers: what they adopt, and whom they name. */
import assert from 'node:assert/strict'
import { createParser } from '../../../src/data/index.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import type { HeaderKey } from '../../../src/network/signatures.js'
import { LearnerLoop } from '../../../src/peer/learner-loop.js'
import type { FromLearner, LearnerInit } from '../../../src/peer/thread-messages.js'
import { linearParts } from '../../../src/task/learning-parts.js'
import type { LinearSpec } from '../../../src/task/learning-spec.js'

const spec: LinearSpec = {
  model: 'logistic',
  dimension: 2,
  rule: { name: 'adagrad' },
  averaging: { name: 'uniform' },
  batch: 1,
  features: { constant: false, scale: 'none' }
}

class Peer {
  readonly loop: LearnerLoop
  #messages: FromLearner[] = []
  readonly reports: string[] = []

  constructor(
    readonly id: string,
    signing: HeaderKey
  ) {
    const init: LearnerInit = {
      ...{ spec, plugins: [], execution: undefined, self: id, signing, incarnation: 1, nonce: 7, period: 50, carry: 0 },
      ...{ predictWith: 'average', stream: undefined, labelDelay: undefined, rate: undefined },
      ...{ saved: undefined, progress: undefined, journal: undefined }
    }
    this.loop = new LearnerLoop(
      init,
      linearParts(spec),
      message => this.#messages.push(message),
      () => 0
    )
  }

  static async create(networkId?: string): Promise<readonly [Peer, Peer]> {
    const { raw, ...key } = await generateIdentityKey()
    const id = peerIdOf({ raw, ...key })
    return [new Peer(id, { raw, networkId }), new Peer(id, { raw, networkId })]
  }

  learn(value: number): this {
    const rows = createParser('jsonl', { dimension: 2 }).push(Buffer.from(`{"label": 1, "features": [${value}, 1]}\n`))
    this.loop.requests.answer(rows, true)
    return this
  }

  /** Connects two peers, and delivers what they send until both are silent. */
  meet(other: Peer, edge: number): void {
    this.loop.receive({ kind: 'connect', edge, peer: other.id })
    other.loop.receive({ kind: 'connect', edge, peer: this.id })
    while (this.#deliver(other) + other.#deliver(this) > 0);
  }

  #deliver(to: Peer): number {
    let count = 0
    const messages = this.#messages
    this.#messages = []
    for (const message of messages) {
      if (message.kind === 'frame' || message.kind === 'announcement') {
        const { edge, bytes } = message
        to.loop.receive({ kind: message.kind === 'frame' ? 'frame' : 'fragment', edge, bytes })
        if (message.kind === 'frame') this.loop.receive({ kind: 'writable', edge })
        count++
      } else if (message.kind === 'warning' || message.kind === 'refused') this.reports.push(message.reason)
    }
    return count
  }
}

describe('peers with keys', () => {
  it('adopt what others of their network have signed', async () => {
    const [[maker], [reader], [stranger]] = [await Peer.create('a'), await Peer.create('a'), await Peer.create('b')]
    maker.learn(3).meet(reader, 1)
    assert.deepEqual(reader.loop.status().predictor, maker.loop.status().predictor)
    maker.meet(stranger, 2)
    assert.equal(stranger.loop.status().predictor.updates, 0)
    assert.match(
      stranger.reports.join(),
      new RegExp(`${maker.id} has not signed the run whose gradients a sum contains`)
    )
  })

  it('name a peer that has signed two updates with one number, and end its sessions', async () => {
    const [[maker, twin], [reader]] = [await Peer.create(), await Peer.create()]
    maker.learn(3).meet(reader, 1)
    twin.learn(-2).meet(reader, 2)
    const reason = `${maker.id} has signed different headers with one name`
    assert.deepEqual(reader.reports.sort(), [
      reason,
      reason,
      `${maker.id} has signed two different updates with one name: nothing of it is accepted any more`
    ])
  })
})
