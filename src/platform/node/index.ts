/** The platform under Node.js: native hashes and compression. */
import { createHash } from 'node:crypto'
import { deflateRawSync, inflateRawSync, crc32 as nativeCrc32 } from 'node:zlib'
import type { Platform } from '../types.js'

export const createSha256: Platform['createSha256'] = () => createHash('sha256')

export const crc32: Platform['crc32'] = nativeCrc32

export const deflateRaw: Platform['deflateRaw'] = (bytes, { dictionary }) =>
  deflateRawSync(bytes, { level: 6, dictionary })

export const inflateRaw: Platform['inflateRaw'] = (bytes, { dictionary, limit }) =>
  inflateRawSync(bytes, { dictionary, maxOutputLength: limit })
