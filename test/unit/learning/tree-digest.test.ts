import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { treeDigest } from '../../../src/learning/digest.js'
import type { Blocks } from '../../../src/learning/types.js'
import { randomFrom } from '../../support/learning/rows.js'

const random = randomFrom(5)
const block = (length: number) => Float32Array.from({ length }, () => random() - 0.5)

const hashOf = (bytes: Uint8Array) => createHash('blake2s256').update(bytes).digest().subarray(0, 16)
const padded = (bytes: Uint8Array) => Buffer.concat([bytes, Buffer.alloc(64 - bytes.length)])

/** As `docs/reference/protocol.md` specifies it, with the hashes of another implementation. */
function specified(groups: readonly Blocks[]): string {
  const hash = createHash('sha256')
  const number = (value: number) => hash.update(Uint32Array.of(value))
  const bundles: Float32Array[][] = []
  number(groups.length)
  for (const blocks of groups) {
    number(blocks.length)
    for (const one of blocks) {
      number(one.length)
      if (one.length < 1024) {
        hash.update(one)
        continue
      }
      const bundle = bundles.find(([{ length }, ...rest]) => length === one.length && rest.length < 15)
      if (bundle) bundle.push(one)
      else bundles.push([one])
    }
  }
  for (const bundle of bundles) {
    const elements = Math.floor(16 / bundle.length)
    let level: Uint8Array[] = []
    for (let from = 0; from < bundle[0].length; from += elements) {
      const words: number[] = []
      for (let i = from; i < Math.min(bundle[0].length, from + elements); i++)
        for (const one of bundle) words.push(one[i])
      level.push(hashOf(padded(new Uint8Array(Float32Array.from(words).buffer))))
    }
    while (level.length > 16_384) {
      const nodes: Uint8Array[] = []
      for (let from = 0; from < level.length; from += 4)
        nodes.push(hashOf(padded(Buffer.concat(level.slice(from, from + 4)))))
      level = nodes
    }
    for (const node of level) hash.update(node)
  }
  return hash.digest('hex').slice(0, 32)
}

describe('the digest of linear models', () => {
  it('is the one that the protocol specifies', () => {
    for (const lengths of [
      [[3], [3, 2], []],
      [[1023], [1024], [1025]],
      [[5000], [5000, 2], [5000]],
      [[70_001], [70_001], [70_001, 70_001]],
      [[300_000]],
      [Array.from({ length: 17 }, () => 2000), [1500], [1500]]
    ]) {
      const groups = lengths.map(group => group.map(block))
      assert.equal(treeDigest(groups), specified(groups))
    }
  })

  it('after changes in place equals the one from scratch', () => {
    const groups = [[block(20_000)], [block(20_000), block(2)], [block(20_000), block(3)]]
    const digests = treeDigest.incremental(groups)
    for (let round = 0; round < 50; round++) {
      const indices = [...new Set(Array.from({ length: 1 + 7 * round }, () => Math.floor(20_000 * random())))]
      for (const i of indices) for (const blocks of groups) blocks[0][i] = random()
      groups[1][1] = block(2)
      digests.changed(20_000, Int32Array.from(indices).sort())
      assert.equal(digests.of(groups), treeDigest(groups))
    }
  })

  it('depends on every element, and on the division into blocks', () => {
    const blocks = [block(3000), block(3000)]
    const all = new Set([
      treeDigest([blocks]),
      treeDigest([[blocks[0]], [blocks[1]]]),
      treeDigest([blocks.toReversed()])
    ])
    assert.equal(all.size, 3)
    for (const i of [0, 1, 1500, 2999]) {
      for (const one of blocks) {
        const before = one[i]
        one[i] = -before
        all.add(treeDigest([blocks]))
        one[i] = before
      }
    }
    assert.equal(all.size, 11)
  })
})
