/**
 * Allocates long arrays that outlive an event: on the heap, unless the driver provides other memory, such as a mapped file. These arrays
 * must not be transferred to another thread.
 */

/** Returns a zeroed buffer of this many bytes, or undefined to allocate it on the heap. */
export type Memory = (bytes: number) => ArrayBuffer | undefined

/** Shorter arrays are always on the heap. */
const LEAST_BYTES = 1 << 18

let memory: Memory | undefined

/** Sets where this thread allocates long arrays from now on. @param other undefined for the heap */
export function useMemory(other: Memory | undefined): void {
  memory = other
}

/** A zeroed buffer. */
export function newBuffer(bytes: number): ArrayBuffer {
  return (bytes < LEAST_BYTES ? undefined : memory?.(bytes)) ?? new ArrayBuffer(bytes)
}

/** A block of zeros. */
export function newBlock(length: number): Float32Array<ArrayBuffer> {
  return new Float32Array(newBuffer(4 * length))
}

export function copyBlock(block: Float32Array): Float32Array<ArrayBuffer> {
  if (memory === undefined || block.byteLength < LEAST_BYTES) return block.slice() as Float32Array<ArrayBuffer>
  const copy = newBlock(block.length)
  copy.set(block)
  return copy
}

export function copyBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  if (memory === undefined || bytes.length < LEAST_BYTES) return bytes.slice() as Uint8Array<ArrayBuffer>
  const copy = new Uint8Array(newBuffer(bytes.length))
  copy.set(bytes)
  return copy
}
