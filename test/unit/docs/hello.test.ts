/** The hello table of docs/reference/protocol.md has the fields that peers compare. */
import assert from 'node:assert/strict'
import type { LearningSpec } from '../../../src/task/learning-spec.js'
import { learningSpecFields } from '../../../src/task/spec-text.js'
import { createPeerTask } from '../../../src/task/task.js'
import { read } from '../../support/documents.js'

describe('the hello of docs/reference/protocol.md', () => {
  it('has each field that can be in a spec', async () => {
    const rule = { name: 'adam' } as const
    const { spec } = await createPeerTask({ model: { model: 'mlp', hidden: [4] }, features: 3, classes: 2, rule })
    const { network } = spec
    assert.ok(network)
    const all = {
      ...spec,
      network: {
        ...network,
        target: { kind: 'number', scale: { mean: 0, deviation: 1 } },
        text: { alphabet: 'ab', length: 8 },
        weights: '0123456789abcdef',
        tuning: { freeze: ['dense0'] }
      },
      algorithm: 'dmb',
      localSteps: 8,
      localMomentum: 0.5,
      sumBytes: 0.03,
      influence: 'bounded',
      classWeights: [1, 2],
      plugins: '0123456789abcdef'
    } as LearningSpec
    const table = read('docs/reference/protocol.md').split('## What must be equal')[1].split('\n## ')[0]
    const documented = new Set([...table.matchAll(/^\| `([\w-]+)`/gm)].map(([, field]) => field))
    const fields = learningSpecFields(all).map(([field]) => field)
    assert.deepEqual(
      fields.filter(field => !documented.has(field)),
      []
    )
    // `network-id` is added by the peer.
    assert.deepEqual(
      [...documented].filter(field => !fields.includes(field)),
      ['network-id']
    )
  })
})
