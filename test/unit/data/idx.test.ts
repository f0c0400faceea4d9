/** IDX: images and labels, their names, and files that do not fit. */
import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { openStream } from '../../../src/data/open.js'
import { plainStream, withFiles } from '../../support/streams.js'

function idx(sizes: number[], bytes: number[]): Buffer {
  const header = Buffer.alloc(4 + 4 * sizes.length)
  header.set([0, 0, 8, sizes.length])
  for (const [i, size] of sizes.entries()) header.writeUInt32BE(size, 4 + 4 * i)
  return Buffer.concat([header, Buffer.from(bytes)])
}

const images = idx([3, 1, 2], [0, 255, 51, 0, 0, 0])
const labels = idx([3], [1, 0, 2])
const rows = [
  { label: 1, features: [[1, 1]] },
  { label: 0, features: [[0, Math.fround(0.2)]] },
  { label: 2, features: [] }
]

describe('IDX', () => {
  it('reads images with the labels file beside them, with and without gzip', async () => {
    await withFiles(async write => {
      const data = await write('t-images-idx3-ubyte', images)
      await write('t-labels-idx1-ubyte.gz', gzipSync(labels))
      const stream = await openStream({ data, passes: 2 })
      assert.equal(stream.dimension, 2)
      assert.equal(stream.classes, 3)
      assert.deepEqual(await plainStream(stream), [...rows, ...rows])
    })
  })

  it('reads images from standard input, with the constant feature', async () => {
    await withFiles(async write => {
      const stdin = createReadStream(await write('a', gzipSync(images)))
      const path = await write('b', labels)
      const stream = await openStream({ data: '-', format: 'idx', labels: path, stdin, constant: true })
      assert.equal(stream.dimension, 3)
      const shifted = rows.map(row => ({ ...row, features: [[0, 1], ...row.features.map(([i, v]) => [i + 1, v])] }))
      assert.deepEqual(await plainStream(stream), shifted)
    })
  })

  it('skips images with a class out of range, and reports their numbers', async () => {
    await withFiles(async write => {
      const data = await write('t-images-idx3-ubyte', images)
      await write('t-labels-idx1-ubyte', labels)
      const faults: string[] = []
      const stream = await openStream({
        data,
        classes: 2,
        onMalformed: m => faults.push(`${m.line}:${m.column}: ${m.reason}`)
      })
      assert.deepEqual(await plainStream(stream), rows.slice(0, 2))
      assert.deepEqual(faults, ['3:0: label 2 is not below the number of classes, 2'])
    })
  })

  it('reports files that do not fit', async () => {
    await withFiles(async write => {
      const data = await write('t-images.idx', images)
      const right = await write('right', labels)
      const cases: [string, string, RegExp][] = [
        [right, right, /magic number 00000801, expected 00000803: give an IDX file of images/],
        [data, data, /magic number 00000803, expected 00000801: give an IDX file of labels/],
        [await write('text', 'some text'), right, /magic number 736f6d65/],
        [await write('short', images.subarray(0, 20)), right, /ends before the last item/],
        [await write('tiny', images.subarray(0, 3)), right, /ends before the last item/],
        [
          data,
          await write('few', idx([2], [1, 0])),
          /has 3 images, .*few has 2 labels: give the labels of these images/
        ],
        [await write('vast', idx([1, 65536, 65536], [])), right, /images have 4294967296 bytes/]
      ]
      for (const [path, labelPath, message] of cases) {
        const reading = async () => plainStream(await openStream({ data: path, format: 'idx', labels: labelPath }))
        await assert.rejects(reading, (error: Error) => error.name === 'IdxError' && message.test(error.message))
      }
      await assert.rejects(openStream({ data }), { name: 'MissingInputError', message: /no such labels file/ })
      await assert.rejects(openStream({ data: right, format: 'idx' }), {
        message: /the name does not determine the labels file/
      })
    })
  })
})
