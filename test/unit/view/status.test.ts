import assert from 'node:assert/strict'
import { decodeStatus, StatusError } from '../../../src/view/index.js'
import { A, status } from '../../support/statuses.js'

const json = JSON.stringify

describe('a status', () => {
  it('survives encoding and decoding, and is small', () => {
    const id = `12D3KooW${'x'.repeat(44)}`
    const given = status({
      name: 'the one in the cellar',
      neighbours: [id, id, id, id],
      predictor: { updates: 123_456, origin: id, incarnation: 7 },
      trail: Array.from({ length: 32 }, (_, i) => i.toString(16).padStart(8, '0'))
    })
    assert.deepEqual(decodeStatus(json(given)), given)
    assert.ok(json(given).length < 1200, `${json(given).length} characters`)
  })

  it('is rejected if any field is invalid', () => {
    const wrong: object[] = [
      { version: 2 },
      { name: '' },
      { software: '<script>' },
      { name: 'x'.repeat(41) },
      { name: 'two\nlines' },
      { name: 'turned \u202e around' },
      { incarnation: -1 },
      { inputs: 0.5 },
      { inputs: 2 ** 60 },
      { loss: null },
      { loss: -1 },
      { loss: 1e300 },
      { accuracy: 1.1 },
      { interval: 1 },
      { interval: 3_600_000 },
      { neighbours: Array(65).fill(A) },
      { neighbours: ['<script>'] },
      { neighbours: ['1'.repeat(65)] },
      { predictor: { updates: 1, origin: '../..', incarnation: 1 } },
      { predictor: undefined },
      { trail: [] },
      { trail: ['0000000g'] },
      { trail: Array(33).fill('00000000') },
      { ended: 'yes' }
    ]
    for (const part of wrong) {
      assert.throws(() => decodeStatus(json({ ...status(), ...part })), StatusError, JSON.stringify(part))
    }
    for (const value of [null, 3, [], 'status', {}]) assert.throws(() => decodeStatus(json(value)), StatusError)
    assert.throws(() => decodeStatus('{'), StatusError)
  })

  it('may contain unknown fields, which are dropped', () => {
    const { future, ...given } = decodeStatus(json({ ...status(), future: 1 })) as Record<string, unknown>
    assert.equal(future, undefined)
    assert.deepEqual(given, status())
  })
})
