/** Readers of plug-ins: positions of inputs, and inputs that arrive late. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { addReader, type CustomInput, openStream, type StreamPosition } from '../../../src/data/index.js'
import { plainRows } from '../../support/streams.js'

/** Inputs 0 … 9, of which every third has a position. */
function* numbered(from: unknown): Generator<CustomInput> {
  for (let i = from === undefined ? 0 : (from as { after: number }).after + 1; i < 10; i++) {
    yield { label: i % 2, features: [i], ...(i % 3 === 2 && { position: { after: i } }) }
  }
}

describe('a reader of a plug-in', () => {
  addReader('custom:numbered', () => ({
    dimension: 1,
    classes: 2,
    repeatable: false,
    hasPositions: true,
    now: () => ({ after: 6 }),
    read: from => numbered(from)
  }))
  const options = { data: 'numbers', format: 'custom:numbered' as const }

  async function values(more: {
    resume?: StreamPosition
    from?: 'now' | number
    shard?: { index: number; count: number }
  }) {
    const rows: number[] = []
    const positions: StreamPosition[] = []
    for await (const batch of await openStream({ ...options, ...more })) {
      rows.push(...plainRows(batch).map(({ features }) => features[0][1]))
      for (let count = 1; count <= batch.size; count++) positions.push(batch.positionAfter?.(count) as StreamPosition)
    }
    return { rows, positions }
  }

  it('continues after every input, also in a shard', async () => {
    for (const shard of [undefined, { index: 1, count: 3 }, { index: 1, count: 2 }]) {
      const whole = await values({ shard })
      for (const [index, position] of whole.positions.entries()) {
        const resume = JSON.parse(JSON.stringify(position)) as StreamPosition
        assert.deepEqual((await values({ shard, resume })).rows, whole.rows.slice(index + 1))
      }
    }
  })

  it('begins with new inputs, if it can', async () => {
    assert.deepEqual((await values({ from: 'now' })).rows, [7, 8, 9])
    await assert.rejects(
      values({ from: 7 }),
      /^StreamOptionsError: custom:numbered has no position 7: remove the option from$/
    )
  })

  it('passes inputs on as they arrive, and ends when it is aborted', async () => {
    const abort = new AbortController()
    addReader('custom:late', () => ({
      repeatable: false,
      async *read(_from, context) {
        yield* numbered({ after: 6 })
        await sleep(60_000, undefined, { signal: context?.signal })
      }
    }))
    const rows: number[] = []
    const reading = (async () => {
      for await (const batch of await openStream({ data: '', format: 'custom:late', signal: abort.signal })) {
        rows.push(batch.size)
        assert.equal(batch.positionAfter, undefined)
        abort.abort(new Error('enough'))
      }
    })()
    await assert.rejects(reading, /enough/)
    assert.deepEqual(rows, [3])
  })
})
