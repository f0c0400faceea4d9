import assert from 'node:assert/strict'
import { Downloads } from '../../../src/peer/downloads.js'

describe('Downloads', () => {
  const lengths = [10, 5_000_000, 1, 0, 4_194_304, 9_000_000]
  const chunkOf = (length: number) => Uint8Array.from({ length }, (_, i) => i + (i >> 8))
  let made = 0

  const downloads = new Downloads()
  const start = () =>
    downloads.start({
      file: 'name.safetensors',
      bytes: lengths.reduce((sum, length) => sum + length, 0),
      etag: 'tag',
      chunks: (function* () {
        for (const length of lengths) {
          made++
          yield chunkOf(length)
        }
      })()
    })

  it('give the bytes of all chunks in pieces of at most 4 MiB, and make a chunk when it is needed', () => {
    const { download, ...head } = start()
    assert.deepEqual(head, { file: 'name.safetensors', bytes: 18_194_315, etag: 'tag' })
    made = 0
    const first = downloads.next(download)
    assert.equal(made, 1)
    const pieces = [first as Uint8Array]
    for (let piece = downloads.next(download); piece !== undefined; piece = downloads.next(download)) pieces.push(piece)
    assert.ok(pieces.every(({ length }) => length > 0 && length <= 4_194_304))
    assert.ok(Buffer.concat(pieces).equals(Buffer.concat(lengths.map(chunkOf))))
    assert.equal(downloads.next(download), undefined)
  })

  it('are independent of one another, until they end', () => {
    const [one, other] = [start(), start()].map(({ download }) => download)
    downloads.next(one)
    downloads.end(one)
    assert.equal(downloads.next(one), undefined)
    assert.equal(downloads.next(other)?.length, 10)
  })
})
