/** Long arrays for reuse: the pages of new ones take longer to get than an update takes to write them. */

/** Shorter arrays are cheap. */
const MIN_REUSED = 2 ** 14
/** Number of times that as many arrays as are spare are taken before those that nobody needed meanwhile are dropped. */
const ROUNDS = 8

/** The spare arrays of one length. */
interface Spare {
  readonly arrays: Float32Array[]
  /** Number of arrays taken in this round, and the smallest number of spare ones in it. */
  takes: number
  unused: number
}

const spare = new Map<number, Spare>()
/** Arrays that were taken. Others are not kept, so that there are no more than were in use at a time. */
const taken = new WeakSet<Float32Array>()

/** An array with arbitrary content. */
export function takeArray(length: number): Float32Array<ArrayBuffer> {
  if (length < MIN_REUSED) return new Float32Array(length)
  const array = (spare.get(length)?.arrays.pop() ?? new Float32Array(length)) as Float32Array<ArrayBuffer>
  taken.add(array)
  dropUnused(length)
  return array
}

/** Drops what a whole predictor, or one of a rival, has left behind, and later updates do not use. */
function dropUnused(length: number): void {
  const of = spare.get(length)
  if (of === undefined) return
  const { arrays } = of
  of.unused = Math.min(of.unused, arrays.length)
  if (++of.takes < ROUNDS * (arrays.length + 1)) return
  arrays.splice(0, of.unused)
  Object.assign(of, { takes: 0, unused: arrays.length })
}

/** A copy in an array that may be given back. */
export function takeCopy(block: Float32Array): Float32Array<ArrayBuffer> {
  if (block.length < MIN_REUSED) return block.slice()
  const copy = takeArray(block.length)
  copy.set(block)
  return copy
}

/** The caller, and everybody else, has no use for an array any more. */
export function giveArray(array: Float32Array): void {
  if (!taken.delete(array)) return
  const of = spare.get(array.length)
  if (of === undefined) spare.set(array.length, { arrays: [array], takes: 0, unused: 0 })
  else of.arrays.push(array)
}

/** Number of spare arrays of a length. */
export function spareArrays(length: number): number {
  return spare.get(length)?.arrays.length ?? 0
}
