/** Two peers whose model gains layers: they agree, and each predictor is executed with the layers that it was computed with. */
import assert from 'node:assert/strict'
import { createParser } from '../../../src/data/index.js'
import { networkModel } from '../../../src/l2l/index.js'
import type { Learner } from '../../../src/learning/index.js'
import { layersWithBlocks } from '../../../src/nn/blocks.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import { LearnerLoop } from '../../../src/peer/learner-loop.js'
import type { FromLearner, LearnerInit } from '../../../src/peer/thread-messages.js'
import { learningParts } from '../../../src/task/learning-parts.js'
import type { NetworkLearningSpec } from '../../../src/task/learning-spec.js'

const FROM = 4
const spec: NetworkLearningSpec = {
  model: 'network',
  network: {
    layers: parseModel(
      {
        layers: [
          { kind: 'dense', units: 6, activation: 'tanh' },
          { kind: 'dense', name: 'late', units: 6, activation: 'tanh', from: FROM }
        ]
      },
      'test'
    ),
    sample: { kind: 'features', shape: [3] },
    target: { kind: 'class', classes: 2 }
  },
  dimension: 3,
  classes: 2,
  rule: { name: 'adam' },
  averaging: { name: 'tail' },
  batch: 8,
  features: { constant: false, scale: 'none' }
}

const line = (i: number) => `{"label": ${i % 2}, "features": [${Math.sin(i)}, ${Math.cos(3 * i)}, 1]}\n`
const rows = (from: number, to: number) =>
  createParser('jsonl', { dimension: 3 }).push(
    Buffer.from(Array.from({ length: to - from }, (_, i) => line(from + i)).join(''))
  )

class Node {
  readonly messages: FromLearner[] = []
  /** Numbers of updates of the learners that computed gradients and scores. */
  readonly calls = { gradients: new Set<number>(), scores: new Set<number>() }
  readonly loop: LearnerLoop

  constructor(self: string, { learner, recipe }: Awaited<ReturnType<typeof learningParts>>) {
    const init: LearnerInit = {
      spec,
      plugins: [],
      execution: undefined,
      self,
      incarnation: 1,
      nonce: 0,
      period: 50,
      carry: 0,
      predictWith: 'average',
      stream: undefined,
      labelDelay: undefined,
      rate: undefined,
      saved: undefined,
      progress: undefined,
      journal: { records: [], pending: [], tail: undefined }
    }
    this.loop = new LearnerLoop(
      init,
      { learner: this.#recording(learner), recipe },
      message => this.messages.push(message),
      () => 0
    )
  }

  /** The loop's learner, which records the predictors that it is called for. */
  #recording(learner: Learner): Learner {
    const { layout, classifies } = learner
    const never = () => assert.fail('called without the number of updates')
    return {
      layout,
      classifies,
      initial: () => learner.initial(),
      score: never,
      addGradient: never,
      predict: never,
      after: updates => {
        const now = learner.after?.(updates) as Learner
        return {
          layout,
          classifies,
          initial: () => now.initial(),
          predict: (...given) => now.predict(...given),
          score: (...given) => {
            this.calls.scores.add(updates)
            now.score(...given)
          },
          addGradient: (...given) => {
            this.calls.gradients.add(updates)
            assert.equal(updates, this.updates)
            now.addGradient(...given)
          }
        }
      }
    }
  }

  get updates(): number {
    return this.loop.status().predictor.updates
  }

  learn(from: number, to: number): void {
    this.loop.requests.answer(rows(from, to), true)
  }

  /** Frames sent since the last call. */
  frames(): Uint8Array[] {
    const frames = this.messages.flatMap(message => (message.kind === 'frame' ? [message.bytes] : []))
    this.messages.length = 0
    return frames
  }

  serving(): { readonly predictor: string; readonly parameters: readonly Float32Array[] } {
    const { predictor, blocks } = this.loop.lastingServing()
    return { predictor: JSON.stringify(predictor), parameters: blocks }
  }
}

describe('two peers with a growing model', () => {
  it('agree, and compute gradients with the layers of the current predictor', async () => {
    const peers = await Promise.all(
      ['a', 'b'].map(async id => new Node(id, await learningParts(spec, { backend: 'cpu' })))
    )
    const [a, b] = peers
    a.loop.receive({ kind: 'connect', edge: 1, peer: 'b' })
    b.loop.receive({ kind: 'connect', edge: 1, peer: 'a' })
    const exchange = () => {
      for (let round = 0; round < 6; round++) {
        for (const [from, to] of [peers, [b, a]]) {
          from.loop.tick()
          for (const bytes of from.frames()) to.loop.receive({ kind: 'frame', edge: 1, bytes })
          from.loop.receive({ kind: 'writable', edge: 1 })
        }
      }
    }
    const late = layersWithBlocks(networkModel(spec.network)).findIndex(({ name }) => name === 'late')
    const initial = a.serving().parameters[late]
    for (let i = 0; b.updates < 2 * FROM; i++) {
      a.learn(5 * i, 5 * i + 3)
      b.learn(5 * i + 3, 5 * i + 5)
      exchange()
      const [one, other] = peers.map(peer => peer.serving())
      assert.deepEqual(one, other)
      assert.equal(
        one.parameters[late].every((v, k) => v === initial[k]),
        a.updates <= FROM,
        `after ${a.updates} updates`
      )
      assert.ok(i < 100)
    }
    for (const { calls } of peers) {
      assert.deepEqual(calls.scores, calls.gradients)
      assert.ok(calls.gradients.has(0) && [...calls.gradients].some(updates => updates >= FROM))
    }
  })
})
