import assert from 'node:assert/strict'
import { ChunkSize } from '../../../src/peer/chunk-size.js'

/** The rows and the milliseconds of the last of 20 chunks, and the longest of all. */
function settled(time: (rows: number) => number, warmUp = 0) {
  const size = new ChunkSize()
  let rows = 0
  let longest = 0
  for (let chunk = 0; chunk < 20; chunk++) {
    rows = size.rows
    const milliseconds = time(rows)
    longest = Math.max(longest, milliseconds)
    size.took(rows, milliseconds + (chunk === 0 ? warmUp : 0))
  }
  return { rows, milliseconds: time(rows), longest }
}

describe('ChunkSize', () => {
  it('takes many rows at a time of a fast model', () => {
    assert.equal(settled(rows => 0.001 * rows, 50).rows, 128)
  })

  it('takes as many rows of a slow model as fit half a second', () => {
    const { rows, longest } = settled(rows => 30 * rows, 10_000)
    assert.ok(rows >= 8 && rows <= 16, `${rows} rows`)
    assert.ok(longest <= 500, `${longest} ms`)
  })

  it('takes longer chunks if each has a large cost of its own, but at most 5 s', () => {
    const { rows, milliseconds, longest } = settled(rows => 900 + 100 * rows)
    assert.ok(milliseconds / rows < 1.5 * 100, `${milliseconds / rows} ms a row instead of 100`)
    assert.ok(longest <= 4000, `${longest} ms`)
    assert.equal(settled(rows => 6000 + 1000 * rows).rows, 1)
    assert.ok(settled(rows => 1500 * rows).longest <= 5000)
  })

  it('follows a machine that becomes slower or faster', () => {
    let cost = 1
    const size = new ChunkSize()
    const run = (chunks: number) => {
      for (let i = 0; i < chunks; i++) size.took(size.rows, cost * size.rows)
      return size.rows
    }
    assert.equal(run(20), 128)
    cost = 100
    assert.ok(run(20) <= 5)
    cost = 1
    assert.equal(run(20), 128)
  })

  it('does not grow while rows come one by one', () => {
    const size = new ChunkSize()
    for (let i = 0; i < 8; i++) size.took(size.rows, 1)
    const { rows } = size
    for (let i = 0; i < 20; i++) size.took(1, 1)
    assert.equal(size.rows, rows)
  })
})
