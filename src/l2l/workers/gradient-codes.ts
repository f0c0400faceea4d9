/**
 * Gradients in fewer bytes, from a worker of another process to its peer: a device of another machine returns its gradients over a line.
 * The peer adds what arrives to the gradients of its other devices, and rounds the whole sum afterwards, so that sums between peers stay
 * exact. What a code loses stays at the worker, which adds it to its next gradient (error feedback), so that the sum of what it sends
 * follows the sum of its gradients.
 *
 * - `rank:R` sends P and Q of M ≈ P·Qᵀ (PowerSGD: Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
 *   Distributed Optimization", 2019): one power iteration from the Q of the step before, with orthonormal columns of P. A tensor of
 *   several axes is a matrix whose columns are its last axis. Vectors, and matrices that are not larger than P and Q, are sent as they are.
 * - `sign` sends a bit for each number and their mean magnitude, for each tensor (Karimireddy, Rebjock, Stich and Jaggi, "Error Feedback
 *   Fixes SignSGD and other Gradient Compression Schemes", 2019).
 */
import { OptionError } from '../../learning/index.js'
import { forkSeed, uniforms } from '../../nn/random.js'
import { isFiniteBlock } from '../../numeric/numbers.js'

/** Seed of the first Q. */
const SEED = 19051372
/** A column of P this much shorter than before orthogonalisation is rounding. */
const RANK_TOLERANCE = 1e-5
/** Numbers whose signs share a word. */
const WORD_BITS = 32

/** How a device worker sends the gradient of a layer. */
export type GradientCode = 'sign' | `rank:${number}`

/** The blocks of a network whose gradients are sent in a code. */
export interface CodedBlocks {
  readonly code: GradientCode
  /** The shape of each tensor of each block. */
  readonly shapes: readonly (readonly (readonly number[])[])[]
}

/** @throws OptionError for another text */
export function gradientCode(text: string): GradientCode {
  if (text === 'sign' || /^rank:[1-9]\d{0,3}$/.test(text)) return text as GradientCode
  throw new OptionError(
    `gradients are sent as sign or rank:R, with R from 1 to 9999, not as ${text}: give one of these`
  )
}

/** Where a tensor of a block is, and where its code. Numbers are float32. */
interface Part {
  /** Offset and number of its numbers in the block. */
  readonly from: number
  readonly length: number
  /** Offset and number of its numbers in the code. */
  readonly at: number
  readonly size: number
  /** Rows, columns and rank of a matrix that is sent as P and Q. */
  readonly low?: { readonly rows: number; readonly columns: number; readonly rank: number }
  readonly isSign: boolean
}

/** The parts of a block's code, in order. */
function partsOf(code: GradientCode, shapes: CodedBlocks['shapes'][number]): Part[] {
  let [from, at] = [0, 0]
  return shapes.map(shape => {
    const length = shape.reduce((product, axis) => product * axis, 1)
    const part = { from, length, at, ...formOf(code, shape, length) }
    from += length
    at += part.size
    return part
  })
}

function formOf(code: GradientCode, shape: readonly number[], length: number): Pick<Part, 'size' | 'low' | 'isSign'> {
  if (code === 'sign') {
    const size = 1 + Math.ceil(length / WORD_BITS)
    return size < length ? { size, isSign: true } : { size: length, isSign: false }
  }
  const columns = shape.at(-1) ?? 1
  const rows = length / columns
  const rank = Number(code.slice('rank:'.length))
  const size = rank * (rows + columns)
  return size < length ? { size, low: { rows, columns, rank }, isSign: false } : { size: length, isSign: false }
}

/** Float32 numbers of a block's code; at most those of the block. */
export function codeLength({ code, shapes }: CodedBlocks, block: number): number {
  return partsOf(code, shapes[block]).reduce((sum, { size }) => sum + size, 0)
}

/** Adds the gradient that a code stands for to a block. @param coded as `GradientEncoder.encode` returns it */
export function addCoded(
  { code, shapes }: CodedBlocks,
  block: number,
  coded: Float32Array,
  into: Float32Array,
  sign = 1
): void {
  for (const { from, length, at, size, low, isSign } of partsOf(code, shapes[block])) {
    const sum = into.subarray(from, from + length)
    const own = coded.subarray(at, at + size)
    if (low) addProduct(own.subarray(0, low.rows * low.rank), own.subarray(low.rows * low.rank), low.rank, sum, sign)
    else if (isSign) addSigns(sign * own[0], wordsOf(own), sum)
    else for (let i = 0; i < length; i++) sum[i] += sign * own[i]
  }
}

/** Adds ±P·Qᵀ. @param p [rows, rank] @param q [columns, rank] @param sum [rows, columns] */
function addProduct(p: Float32Array, q: Float32Array, rank: number, sum: Float32Array, sign: number): void {
  const columns = q.length / rank
  for (let row = 0, at = 0; at < p.length; row += columns, at += rank) {
    for (let j = 0, b = 0; j < columns; j++) {
      let dot = 0
      for (let k = 0; k < rank; k++, b++) dot += p[at + k] * q[b]
      sum[row + j] += sign * dot
    }
  }
}

function addSigns(scale: number, words: Uint32Array, sum: Float32Array): void {
  // Without a branch, which would be mispredicted half of the time.
  for (let i = 0; i < sum.length; i++) sum[i] += scale * (1 - 2 * ((words[i >>> 5] >>> (i & 31)) & 1))
}

/** The bits that follow the scale. */
function wordsOf({ buffer, byteOffset, length }: Float32Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset + Float32Array.BYTES_PER_ELEMENT, length - 1)
}

/** The sender's end: keeps what its codes have lost, and for `rank:R` the last Q of each matrix. */
export class GradientEncoder {
  readonly #coded: CodedBlocks
  /** What was not sent, of each block. */
  readonly #rest: Float32Array[] = []
  /** The last Q of each block, in the places of their codes. */
  readonly #last: Float32Array[] = []
  readonly #random = uniforms(forkSeed(SEED, 0))

  constructor(coded: CodedBlocks) {
    this.#coded = coded
  }

  /**
   * @param gradient of the block
   * @returns the code of the gradient and of what earlier codes have lost; not a number if the gradient is not finite, which the receiver
   *   detects. The block then starts anew.
   */
  encode(block: number, gradient: Float32Array): Float32Array {
    const { code, shapes } = this.#coded
    this.#rest[block] ??= new Float32Array(gradient.length)
    const rest = this.#rest[block]
    for (let i = 0; i < rest.length; i++) rest[i] += gradient[i]
    const coded = new Float32Array(codeLength(this.#coded, block))
    const last = this.#last[block]
    for (const { from, length, at, size, low, isSign } of partsOf(code, shapes[block])) {
      const own = coded.subarray(at, at + size)
      const matrix = rest.subarray(from, from + length)
      if (low) this.#factorise(matrix, low, own, last?.subarray(at, at + size))
      else if (isSign) encodeSigns(matrix, own)
      else own.set(matrix)
    }
    addCoded(this.#coded, block, coded, rest, -1)
    if (isFiniteBlock(rest)) {
      if (code !== 'sign') this.#last[block] = coded
    } else {
      rest.fill(0)
      delete this.#last[block]
      coded.fill(Number.NaN)
    }
    return coded
  }

  /** @param own P and Q @param last those of the step before */
  #factorise(
    matrix: Float32Array,
    { rows, columns, rank }: NonNullable<Part['low']>,
    own: Float32Array,
    last: Float32Array | undefined
  ): void {
    const [p, q] = [own.subarray(0, rows * rank), own.subarray(rows * rank)]
    if (last) q.set(last.subarray(rows * rank))
    // A column that was zero stays so without new numbers.
    for (let k = 0; k < rank; k++) {
      let isZero = true
      for (let b = k; b < q.length; b += rank) isZero &&= q[b] === 0
      for (let b = k; isZero && b < q.length; b += rank) q[b] = this.#random() - 0.5
    }
    for (let i = 0, at = 0; at < p.length; i += columns, at += rank) {
      for (let k = 0; k < rank; k++) {
        let dot = 0
        for (let j = 0, b = k; j < columns; j++, b += rank) dot += matrix[i + j] * q[b]
        p[at + k] = dot
      }
    }
    orthonormalise(p, rank)
    q.fill(0)
    for (let i = 0, at = 0; at < p.length; i += columns, at += rank) {
      for (let j = 0, b = 0; j < columns; j++) {
        const value = matrix[i + j]
        for (let k = 0; k < rank; k++, b++) q[b] += value * p[at + k]
      }
    }
  }
}

/** Gram and Schmidt's process on the columns. One that depends on those before it becomes zero. @param p [rows, rank] */
function orthonormalise(p: Float32Array, rank: number): void {
  const dot = (a: number, b: number) => {
    let sum = 0
    for (let at = 0; at < p.length; at += rank) sum += p[at + a] * p[at + b]
    return sum
  }
  for (let k = 0; k < rank; k++) {
    const before = Math.sqrt(dot(k, k))
    for (let other = 0; other < k; other++) {
      const share = dot(k, other)
      for (let at = 0; at < p.length; at += rank) p[at + k] -= share * p[at + other]
    }
    const norm = Math.sqrt(dot(k, k))
    const factor = norm > RANK_TOLERANCE * before ? 1 / norm : 0
    for (let at = 0; at < p.length; at += rank) p[at + k] *= factor
  }
}

/** The mean magnitude, and the sign bit of each number. */
function encodeSigns(numbers: Float32Array, own: Float32Array): void {
  const words = wordsOf(own)
  const bits = new Int32Array(numbers.buffer, numbers.byteOffset, numbers.length)
  let sum = 0
  for (let i = 0; i < numbers.length; i++) {
    sum += Math.abs(numbers[i])
    words[i >>> 5] |= (bits[i] >>> 31) << (i & 31)
  }
  own[0] = sum / numbers.length
}
