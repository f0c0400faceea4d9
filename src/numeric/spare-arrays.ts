/** Long arrays for reuse: the pages of new ones take longer to get than an update takes to write them. */

/** Shorter arrays are cheap. */
const MIN_REUSED = 2 ** 14

const spare = new Map<number, Float32Array[]>()
/** Arrays that were taken. Others are not kept, so that there are no more than were in use at a time. */
const taken = new WeakSet<Float32Array>()

/** An array with arbitrary content. */
export function takeArray(length: number): Float32Array<ArrayBuffer> {
  const array = (spare.get(length)?.pop() ?? new Float32Array(length)) as Float32Array<ArrayBuffer>
  if (length >= MIN_REUSED) taken.add(array)
  return array
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
  const arrays = spare.get(array.length)
  if (arrays === undefined) spare.set(array.length, [array])
  else arrays.push(array)
}
