/**
 * The hash tree of a bundle: up to 16 blocks of equal length, whose elements with the same index are together in a leaf. A change of
 * some elements therefore costs a few hashes for each, whatever the length. The tree is specified in `docs/protocol.md`.
 */
import { HASH_WORDS, hashEach, INPUT_WORDS, MAX_INPUTS, wordAt } from './blake2s.js'

/** Blocks of a bundle at most. */
export const MAX_BUNDLE = INPUT_WORDS
/** Children of a node, whose hashes fill an input. */
const FANOUT = INPUT_WORDS / HASH_WORDS
/** The levels end with the first one that has at most this many nodes. */
const MAX_TOP = 16384

export class MerkleTree {
  readonly #elements: number
  readonly #length: number
  /** Hashes, the leaves' first. */
  readonly #levels: Uint32Array[] = []
  readonly #positions = new Int32Array(MAX_INPUTS)

  /** @param count number of blocks, of `length` elements each */
  constructor(count: number, length: number) {
    this.#elements = Math.floor(INPUT_WORDS / count)
    this.#length = length
    for (let nodes = Math.ceil(length / this.#elements); ; nodes = Math.ceil(nodes / FANOUT)) {
      // Up to a multiple of the fanout, so that every node has all its children.
      this.#levels.push(new Uint32Array(INPUT_WORDS * Math.ceil(nodes / FANOUT)).subarray(0, HASH_WORDS * nodes))
      if (nodes <= MAX_TOP) return
    }
  }

  /** The hashes of the last level. */
  get top(): Uint32Array {
    return this.#levels[this.#levels.length - 1]
  }

  /** Hashes all elements. @param blocks bits of the elements */
  build(blocks: readonly Uint32Array[]): void {
    for (const [level, hashes] of this.#levels.entries()) {
      const nodes = hashes.length / HASH_WORDS
      for (let first = 0; first < nodes; first += MAX_INPUTS) {
        const count = Math.min(MAX_INPUTS, nodes - first)
        for (let n = 0; n < count; n++) this.#positions[n] = first + n
        this.#hash(level, count, blocks)
      }
    }
  }

  /** Hashes again what depends on some elements. @param indices of the elements, in ascending order */
  update(blocks: readonly Uint32Array[], indices: Int32Array): void {
    let nodes = parentsOf(indices, this.#elements)
    for (const level of this.#levels.keys()) {
      if (level > 0) nodes = parentsOf(nodes, FANOUT)
      for (let first = 0; first < nodes.length; first += MAX_INPUTS) {
        const some = nodes.subarray(first, first + MAX_INPUTS)
        this.#positions.set(some)
        this.#hash(level, some.length, blocks)
      }
    }
  }

  /** Hashes the first `count` nodes of `#positions`. */
  #hash(level: number, count: number, blocks: readonly Uint32Array[]): void {
    const write = (words: Uint32Array) =>
      level === 0 ? this.#writeLeaves(words, count, blocks) : this.#writeNodes(words, count, this.#levels[level - 1])
    hashEach(count, write, this.#levels[level], this.#positions)
  }

  #writeLeaves(words: Uint32Array, count: number, blocks: readonly Uint32Array[]): void {
    const step = 4 * blocks.length
    const used = this.#elements * blocks.length
    for (let n = 0; n < count; n++) {
      const first = this.#elements * this.#positions[n]
      const end = Math.min(first + this.#elements, this.#length)
      const to = wordAt(n, INPUT_WORDS)
      // Only the last leaf may be incomplete.
      const written = end - first === this.#elements ? used : 0
      for (let w = written; w < INPUT_WORDS; w++) words[to + 4 * w] = 0
      for (let b = 0; b < blocks.length; b++) {
        const block = blocks[b]
        for (let i = first, at = to + 4 * b; i < end; i++, at += step) words[at] = block[i]
      }
    }
  }

  #writeNodes(words: Uint32Array, count: number, level: Uint32Array): void {
    const children = new Uint32Array(level.buffer)
    const positions = this.#positions
    for (let n = 0; n < count; n++) {
      const from = INPUT_WORDS * positions[n]
      const to = wordAt(n, INPUT_WORDS)
      words[to] = children[from]
      words[to + 4] = children[from + 1]
      words[to + 8] = children[from + 2]
      words[to + 12] = children[from + 3]
      words[to + 16] = children[from + 4]
      words[to + 20] = children[from + 5]
      words[to + 24] = children[from + 6]
      words[to + 28] = children[from + 7]
      words[to + 32] = children[from + 8]
      words[to + 36] = children[from + 9]
      words[to + 40] = children[from + 10]
      words[to + 44] = children[from + 11]
      words[to + 48] = children[from + 12]
      words[to + 52] = children[from + 13]
      words[to + 56] = children[from + 14]
      words[to + 60] = children[from + 15]
    }
  }
}

/** The distinct quotients of ascending numbers. */
function parentsOf(numbers: Int32Array, divisor: number): Int32Array {
  const parents = new Int32Array(numbers.length)
  let count = 0
  for (let i = 0; i < numbers.length; i++) {
    const parent = Math.floor(numbers[i] / divisor)
    if (count === 0 || parents[count - 1] !== parent) parents[count++] = parent
  }
  return parents.subarray(0, count)
}
