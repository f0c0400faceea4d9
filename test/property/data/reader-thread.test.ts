/** A stream that is read in a thread of its own equals the stream of `openStream`, whatever the input and the options. */
import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { openStream, openThreaded, RunningMoments, type StreamOptions } from '../../../src/data/index.js'
import type { ExampleStream, Malformed } from '../../../src/data/types.js'
import { share } from '../../support/runs.js'
import { type PlainRow, plainRows, withFiles } from '../../support/streams.js'

type Open = (options: StreamOptions) => Promise<ExampleStream>

interface Outcome {
  readonly rows: PlainRow[]
  readonly facts: object
  readonly faults: Malformed[]
  readonly moments: unknown
  readonly error: unknown
}

/** All that a consumer sees of a stream. */
async function outcome(open: Open, options: StreamOptions): Promise<Outcome> {
  const faults: Malformed[] = []
  const moments = new RunningMoments()
  const rows: PlainRow[] = []
  let stream: ExampleStream | undefined
  let error: unknown
  try {
    stream = await open({
      ...options,
      onMalformed: fault => faults.push(fault),
      scaling: { moments, frozen: false }
    })
    for await (const batch of stream) rows.push(...plainRows(batch))
  } catch (failure) {
    const { name, message, code } = failure as Error & { code?: unknown }
    error = { name, message, code }
  }
  const { [Symbol.asyncIterator]: _, ...facts } = stream ?? ({} as ExampleStream)
  return { rows, facts, faults, moments: moments.save(), error }
}

const line = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.constantFrom(0, 1), fc.integer({ min: -99, max: 99 }), fc.constantFrom('red', 'blue', ''))
      .map(([label, x, colour]) => `${x},${colour},${label}`)
  },
  { weight: 1, arbitrary: fc.constantFrom('x', '1,2', '"open', '3,red,maybe') }
)
const file = fc
  .array(line, { maxLength: 400 })
  .map(lines => `x,colour,label\n${lines.map(text => `${text}\n`).join('')}`)

const streamOptions = fc.record(
  {
    passes: fc.integer({ min: 1, max: 3 }),
    shard: fc.constant({ index: 1, count: 3 }),
    shuffleWindow: fc.integer({ min: 1, max: 50 }),
    seed: fc.nat(9),
    maxRows: fc.nat(500),
    scale: fc.constant('standard' as const),
    strict: fc.constant(true),
    hashBits: fc.constant(4)
  },
  { requiredKeys: [] }
)

describe('a reader thread', () => {
  it('yields the rows, facts, faults and errors of openStream', async () => {
    await withFiles(write =>
      fc.assert(
        fc.asyncProperty(file, streamOptions, fc.boolean(), async (text, options, isPacked) => {
          const data = await write('rows.csv', isPacked ? gzipSync(text) : text)
          const given = { ...options, data, format: 'csv' as const, label: 'label' }
          const { moments: expectedMoments, ...expected } = await outcome(openStream, given)
          const { moments, ...actual } = await outcome(openThreaded, given)
          assert.deepEqual(actual, expected)
          // A limit inside a batch: openStream counts the rest of the batch.
          if (options.maxRows === undefined) assert.deepEqual(moments, expectedMoments)
        }),
        { numRuns: share(60) }
      )
    )
  })

  it('carries rows and batches of any size', async () => {
    await withFiles(async write => {
      const wide = Array.from({ length: 20_000 }, (_, i) => ` ${i + 1}:${i}`).join('')
      const text = `1 1:1\n0${wide}\n1 2:2\n`.repeat(20) + '0 3:3\n'.repeat(30_000)
      const data = await write('wide.libsvm', text)
      const options = { data, passes: 2, dimension: 20_000 }
      assert.deepEqual(await outcome(openThreaded, options), await outcome(openStream, options))
    })
  })

  it('reports an input that cannot be opened, and data that end early', async () => {
    await withFiles(async write => {
      const packed = gzipSync('1 1:1\n'.repeat(50_000))
      const damaged = await write('short.libsvm.gz', packed.subarray(0, packed.length - 20))
      for (const options of [{ data: damaged }, { data: `${damaged}.none` }, { data: damaged, passes: 0 }]) {
        const expected = await outcome(openStream, options)
        assert.notEqual(expected.error, undefined)
        assert.deepEqual(await outcome(openThreaded, options), expected)
      }
    })
  })

  it('ends when its consumer leaves or is aborted', async () => {
    await withFiles(async write => {
      const data = await write('long.libsvm', '1 1:1 2:2\n'.repeat(200_000))
      for await (const { size } of await openThreaded({ data, passes: Number.POSITIVE_INFINITY })) {
        assert.ok(size > 0)
        break
      }
      const stop = new AbortController()
      const stream = await openThreaded({ data, passes: Number.POSITIVE_INFINITY, signal: stop.signal })
      const reading = (async () => {
        for await (const _ of stream) stop.abort(new Error('enough'))
      })()
      await assert.rejects(reading, /enough/)
    })
  })
})
