/**
 * Content digests of predictors: equal parameters, average and state have equal digests on every machine.
 * For linear models, a few changed elements cost a few hashes, whatever the size of the model.
 */
import { createSha256 } from '#platform'
import { packedBits } from '../numeric/block-kernels.js'
import { MAX_BUNDLE, MerkleTree } from './merkle.js'
import type { Blocks, Digest, IncrementalDigest } from './types.js'

/** 128 bits. */
const HEX_DIGITS = 32
const hostIsLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1

function littleEndian(block: Float32Array): Uint8Array {
  if (hostIsLittleEndian) return new Uint8Array(block.buffer, block.byteOffset, block.byteLength)
  const view = new DataView(new ArrayBuffer(block.byteLength))
  for (const [i, value] of block.entries()) view.setFloat32(4 * i, value, true)
  return new Uint8Array(view.buffer)
}

/**
 * SHA-256 truncated to 128 bits, in lower-case hexadecimal, over: the number of `Blocks`; for each of them the number of its
 * blocks; for each block its length and the bits of its elements. Numbers are unsigned 32-bit, and everything is little endian.
 */
export const digest: Digest = (blocks: readonly Blocks[]): string => {
  const hash = createSha256()
  const number = (value: number): void => {
    hash.update(Uint8Array.of(value, value >>> 8, value >>> 16, value >>> 24))
  }
  number(blocks.length)
  for (const group of blocks) {
    number(group.length)
    for (const block of group) {
      number(block.length)
      hash.update(littleEndian(block))
    }
  }
  return hash.digest('hex').slice(0, HEX_DIGITS)
}

/**
 * SHA-256 truncated to 128 bits, in lower-case hexadecimal, as `digest`, but of fewer bytes if blocks consist of numbers with few bits:
 * the content of a block is that of its sections, each of which begins with a byte that says whether `packedBits` has packed it.
 */
export const packedDigest: Digest = (groups: readonly Blocks[]): string => {
  const hash = createSha256()
  const number = (value: number) => hash.update(Uint8Array.of(value, value >>> 8, value >>> 16, value >>> 24))
  number(groups.length)
  for (const blocks of groups) {
    number(blocks.length)
    for (const block of blocks) {
      number(block.length)
      packedBits(block, (bytes, isPacked) => {
        hash.update(Uint8Array.of(Number(isPacked)))
        hash.update(bytes)
      })
    }
  }
  return hash.digest('hex').slice(0, HEX_DIGITS)
}

/** Shorter blocks are hashed as they are. */
const MIN_TREE_LENGTH = 1024

interface Bundle {
  readonly tree: MerkleTree
  readonly blocks: readonly Uint32Array[]
}

/**
 * SHA-256 truncated to 128 bits, in lower-case hexadecimal, over: the number of `Blocks`; for each of them the number of its
 * blocks; for each block its length, and if it has fewer than 1,024 elements, their bits; then the last levels of the hash trees of
 * all bundles of longer blocks. Numbers are unsigned 32-bit, and everything is little endian.
 */
export const treeDigest: Required<Pick<Digest, 'incremental'>> & Digest = Object.assign(
  (groups: readonly Blocks[]): string => finished(groups, built(groups)),
  {
    incremental(groups: readonly Blocks[]): IncrementalDigest {
      const bundles = built(groups)
      return {
        changed(length: number, indices: Int32Array) {
          for (const { tree, blocks } of bundles) if (blocks[0].length === length) tree.update(blocks, indices)
        },
        of: (now: readonly Blocks[]) => finished(now, bundles)
      }
    }
  }
)

function built(groups: readonly Blocks[]): readonly Bundle[] {
  const bundles = bundlesOf(groups)
  for (const { tree, blocks } of bundles) tree.build(blocks)
  return bundles
}

/** Long blocks of equal length, in their order, up to 16 in a bundle; bundles in the order of their first blocks. */
function bundlesOf(groups: readonly Blocks[]): Bundle[] {
  const bundles: Uint32Array[][] = []
  const open = new Map<number, Uint32Array[]>()
  for (const block of groups.flat()) {
    const { length } = block
    if (length < MIN_TREE_LENGTH) continue
    let bundle = open.get(length)
    if (bundle === undefined || bundle.length === MAX_BUNDLE) {
      bundle = []
      bundles.push(bundle)
      open.set(length, bundle)
    }
    bundle.push(new Uint32Array(block.buffer, block.byteOffset, length))
  }
  return bundles.map(blocks => ({ tree: new MerkleTree(blocks.length, blocks[0].length), blocks }))
}

/** Joins what is hashed: each call of a hash costs as much as a thousand bytes. */
const words = new Uint32Array(2 * MIN_TREE_LENGTH)
const floats = new Float32Array(words.buffer)
const bytes = new Uint8Array(words.buffer)

function finished(groups: readonly Blocks[], bundles: readonly Bundle[]): string {
  const hash = createSha256()
  let end = 0
  const flush = (least: number) => {
    if (end < least) return
    hash.update(bytes.subarray(0, 4 * end))
    end = 0
  }
  words[end++] = groups.length
  for (const blocks of groups) {
    words[end++] = blocks.length
    for (const block of blocks) {
      words[end++] = block.length
      if (block.length < MIN_TREE_LENGTH) {
        floats.set(block, end)
        end += block.length
      }
      flush(MIN_TREE_LENGTH)
    }
    flush(MIN_TREE_LENGTH)
  }
  flush(1)
  for (const { tree } of bundles) hash.update(new Uint8Array(tree.top.buffer, tree.top.byteOffset, tree.top.byteLength))
  return hash.digest('hex').slice(0, HEX_DIGITS)
}
