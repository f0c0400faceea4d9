/** Parquet files for tests: written here, and one that Apache Arrow wrote. */
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { type ParquetWriteOptions, parquetWriteBuffer } from 'hyparquet-writer'

type Column = ParquetWriteOptions['columnData'][number]

/** @param rowGroupSize rows in each group */
export function parquetOf(
  columnData: Column[],
  codec: 'SNAPPY' | 'GZIP' | 'BROTLI' | 'UNCOMPRESSED' = 'SNAPPY',
  rowGroupSize?: number
): Uint8Array {
  const compressors = {
    GZIP: (bytes: Uint8Array) => gzipSync(bytes),
    BROTLI: (bytes: Uint8Array) => brotliCompressSync(bytes)
  }
  return new Uint8Array(parquetWriteBuffer({ columnData, codec, compressors, rowGroupSize }))
}

/** A CSV without quotes as columns of strings. */
export function parquetOfCsv(csv: string): Uint8Array {
  const [names, ...rows] = csv
    .trimEnd()
    .split('\n')
    .map(line => line.split(','))
  return parquetOf(names.map((name, i) => ({ name, data: rows.map(row => row[i]), type: 'STRING' })))
}

/** The columns age, city and bought of 12 rows, the same four three times, compressed by Zstandard (pyarrow 25). */
export const zstdTable = Buffer.from(
  'UEFSMRUEFTAVOkwVBhUAEgAAKLUv/SAYpQAAYB8ALwA0AAAAAAAAAAIAYOABYAEVABUaFSwsFRgVEBUGFQYcAAAAKLUv/SANaQAAAwAAAAXdDQIFJEkCABUEFSoV' +
    'PEwVBBUAEgAAKLUv/SAVqQAABAAAAEJlcm4JAAAAT3NsbywgIk4iFQAVFhUoLBUYFRAVBhUGHAAAACi1L/0gC1kAAAMAAAAFuwsBBZIAFQQVGhUsTBUEFQASAAAo' +
    'tS/9IA1pAAACAAAAbm8DAAAAeWVzFQAVFBUmLBUYFRAVBhUGHAAAACi1L/0gClEAAAIAAAAYAQEFqgoVBBlMNQAYBnNjaGVtYRUGABUEJQIYA2FnZQAVDCUCGARj' +
    'aXR5JQBMHAAAABUMJQIYBmJvdWdodCUATBwAAAAWGBkcGTwmABwVBBk1AAYQGRgDYWdlFQwWGBaMARaoASZeJggpLBUEFQAVAgAVABUQFQIAPCkGGSYGEgAAACYA' +
    'HBUMGTUABhAZGARjaXR5FQwWGBaCARamASaIAiawASksFQQVABUCABUAFRAVAgA8FmYZBhkmBhIAAAAmABwVDBk1AAYQGRgGYm91Z2h0FQwWGBZwFpQBJp4DJtYC' +
    'KSwVBBUAFQIAFQAVEBUCADwWPBkGGSYAGAAAABb+AhYYJggW4gMAKCBwYXJxdWV0LWNwcC1hcnJvdyB2ZXJzaW9uIDI1LjAuMRk8HAAAHAAAHAAAADEBAABQQVIx',
  'base64'
)

/** The same as CSV. */
export const zstdTableAsCsv = `age,city,bought\n${'31,Bern,no\n,"Oslo, ""N""",yes\n47,,no\n52,Bern,yes\n'.repeat(3)}`
