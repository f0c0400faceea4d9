/**
 * CRC-32 of frames, as computed by zlib. Short inputs are processed here, four bytes at a time,
 * because a call into zlib takes longer than that; all inputs where there is no zlib.
 */
import { crc32 } from '#platform'

const SHORT = 512
const POLYNOMIAL = 0xedb88320

/** CRC contribution of a byte followed by 0, 1, 2 and 3 further bytes (slicing-by-4). */
const TABLES = Array.from({ length: 4 }, () => new Int32Array(256))
for (let byte = 0; byte < 256; byte++) {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) remainder = remainder & 1 ? (remainder >>> 1) ^ POLYNOMIAL : remainder >>> 1
  TABLES[0][byte] = remainder
}
for (let following = 1; following < 4; following++) {
  for (let byte = 0; byte < 256; byte++) {
    const before = TABLES[following - 1][byte]
    TABLES[following][byte] = (before >>> 8) ^ TABLES[0][before & 0xff]
  }
}
const [T0, T1, T2, T3] = TABLES

/** CRC-32 of the first `length` bytes, as a signed 32-bit number. */
export function checksum(bytes: Uint8Array, length: number): number {
  if (length > SHORT && crc32 !== undefined) return crc32(bytes.subarray(0, length)) | 0
  let remainder = -1
  let i = 0
  for (; i + 4 <= length; i += 4) {
    const word = remainder ^ (bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24))
    remainder = T3[word & 0xff] ^ T2[(word >>> 8) & 0xff] ^ T1[(word >>> 16) & 0xff] ^ T0[word >>> 24]
  }
  for (; i < length; i++) remainder = (remainder >>> 8) ^ T0[(remainder ^ bytes[i]) & 0xff]
  return ~remainder
}
