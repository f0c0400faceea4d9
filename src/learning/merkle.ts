/**
 * The hash tree of a bundle: up to 16 blocks of equal length, whose elements with the same index are together in a leaf. A
 * change of some elements therefore costs a few hashes for each, whatever the length. The tree is specified in
 * `docs/reference/protocol.md`.
 *
 * BLAKE2s-256 (RFC 7693) of many 64-byte inputs, truncated to 128 bits, in WebAssembly: four inputs at a time, one in each lane
 * of the vectors. An input of 64 bytes takes one compression.
 */
import { type Code, define, get, i32, integers, type Local, repeat, set } from '../numeric/assembler.js'
import { withMemory } from '../numeric/wasm-memory.js'

/** Size of an input and of a hash, in 32-bit words. */
const INPUT_WORDS = 16
const HASH_WORDS = 4
/** Maximum number of inputs of a call. */
const MAX_INPUTS = 1024

const LANES = 4
const ROUNDS = 10
const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19] as const
/** Hash length 32, no key, fanout 1, depth 1. */
const PARAMETERS = 0x01010020
const INPUT_BYTES = 64
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0]
] as const
/** Columns, then diagonals. */
const MIXED = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14]
] as const

/** A byte rotation to the right of each 32-bit lane, as an order of bytes. */
const byteRotation = (bytes: number) => Array.from({ length: 16 }, (_, i) => (i & ~3) | ((i + bytes) & 3))

function rotated(value: Local, bits: number): Code {
  if (bits % 8 === 0) return integers.shuffle(get(value), byteRotation(bits / 8))
  const [right, left] = [i32.constant(bits), i32.constant(32 - bits)]
  return integers.or(integers.shiftRight(get(value), right), integers.shiftLeft(get(value), left))
}

const kernel = define('hash', ['i32', 'i32', 'i32'], (locals, [input, output, groups]) => {
  const v = Array.from({ length: 16 }, () => locals.vector())
  const h = IV.map((word, i) => (i === 0 ? (word ^ PARAMETERS) >>> 0 : word))
  const start = [...h, ...IV]
  start[12] = (start[12] ^ INPUT_BYTES) >>> 0
  start[14] = ~start[14] >>> 0
  const addTo = (to: Local, from: Local): Code => set(to, integers.add(get(to), get(from)))
  const addWord = (to: Local, word: number): Code =>
    set(to, integers.add(get(to), integers.loadAt(get(input), 4 * LANES * word)))
  const mixInto = (to: Local, from: Local, bits: number): Code => [
    set(to, integers.xor(get(to), get(from))),
    set(to, rotated(to, bits))
  ]
  const mix = ([a, b, c, d]: readonly Local[], x: number, y: number): Code => [
    addTo(a, b),
    addWord(a, x),
    mixInto(d, a, 16),
    addTo(c, d),
    mixInto(b, c, 12),
    addTo(a, b),
    addWord(a, y),
    mixInto(d, a, 8),
    addTo(c, d),
    mixInto(b, c, 7)
  ]
  const rounds = SIGMA.slice(0, ROUNDS).map(order =>
    MIXED.map((mixed, i) =>
      mix(
        mixed.map(one => v[one]),
        order[2 * i],
        order[2 * i + 1]
      )
    )
  )
  return repeat(groups, [
    start.map((word, i) => set(v[i], integers.constant(word))),
    rounds,
    Array.from({ length: HASH_WORDS }, (_, i) =>
      integers.storeAt(
        get(output),
        4 * LANES * i,
        integers.xor(integers.constant(h[i]), integers.xor(get(v[i]), get(v[i + 8])))
      )
    ),
    set(input, i32.add(get(input), i32.constant(LANES * INPUT_BYTES))),
    set(output, i32.add(get(output), i32.constant(LANES * 4 * HASH_WORDS)))
  ])
})

interface Kernel {
  /** Word w of input n is at `inputAt(n) + LANES·w`. */
  readonly inputs: Uint32Array
  readonly hashes: Uint32Array
  /** @param groups number of groups of four inputs */
  hash(groups: number): void
}

let created: Kernel | undefined

/** Compiled at first use. */
function createKernel(): Kernel {
  const inputBytes = MAX_INPUTS * INPUT_BYTES
  const hashBytes = MAX_INPUTS * 4 * HASH_WORDS
  const { kernels, buffer } = withMemory([kernel], inputBytes + hashBytes)
  return {
    inputs: new Uint32Array(buffer, 0, inputBytes / 4),
    hashes: new Uint32Array(buffer, inputBytes, hashBytes / 4),
    hash: groups => kernels.hash(0, inputBytes, groups)
  }
}

/**
 * Hashes inputs, `MAX_INPUTS` at most.
 * @param write writes the words of all inputs: word w of input n at `wordAt(n, INPUT_WORDS) + 4·w`
 * @param into receives the hash of input n at `HASH_WORDS · positions[n]`
 */
function hashEach(count: number, write: (words: Uint32Array) => void, into: Uint32Array, positions: Int32Array): void {
  created ??= createKernel()
  const { inputs, hashes, hash } = created
  write(inputs)
  hash(Math.ceil(count / LANES))
  for (let n = 0; n < count; n++) {
    const from = wordAt(n, HASH_WORDS)
    const to = HASH_WORDS * positions[n]
    for (let w = 0; w < HASH_WORDS; w++) into[to + w] = hashes[from + LANES * w]
  }
}

/** Index of the first word of number n, in groups of four numbers with `words` words each. */
function wordAt(n: number, words: number): number {
  return (n >> 2) * LANES * words + (n & 3)
}

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
