/** Long arrays that outlive an event. */

/** A block of zeros. */
export function newBlock(length: number): Float32Array<ArrayBuffer> {
  return new Float32Array(length)
}

export function copyBlock(block: Float32Array): Float32Array<ArrayBuffer> {
  return block.slice() as Float32Array<ArrayBuffer>
}
