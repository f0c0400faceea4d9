/** Images of bytes as sparse rows: a pixel's value is its byte divided by 255, and the background (0) is left out. */
import type { RowBuffer } from './rows.js'

const PIXEL_VALUES = Float32Array.from({ length: 256 }, (_, byte) => byte / 255)

/** Appends the image `pixels[from, from + size)` to `out`, which has enough capacity. */
export function addImage(
  out: RowBuffer,
  pixels: Uint8Array,
  from: number,
  size: number,
  label: number,
  constant: boolean
): void {
  const { indices, values } = out
  const shift = constant ? 1 : 0
  let entry = out.entries
  if (constant) {
    indices[entry] = 0
    values[entry++] = 1
  }
  for (let i = 0; i < size; i++) {
    const pixel = pixels[from + i]
    if (pixel === 0) continue
    indices[entry] = i + shift
    values[entry++] = PIXEL_VALUES[pixel]
  }
  out.labels[out.size] = label
  out.entries = entry
  out.offsets[++out.size] = entry
}
