/** Helpers for the tests of streams: rows as plain values, and temporary files. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createParser } from '../../src/data/formats/parser.js'
import type { ParserOptions, TextFormat } from '../../src/data/index.js'
import type { Malformed } from '../../src/data/types.js'
import type { Examples } from '../../src/learning/types.js'

export interface PlainRow {
  label: number
  features: [number, number][]
}

export function plainRows(examples: Examples): PlainRow[] {
  return Array.from({ length: examples.size }, (_, row) => {
    const features: [number, number][] = []
    for (let i = examples.offsets[row]; i < examples.offsets[row + 1]; i++) {
      features.push([examples.indices[i], examples.values[i]])
    }
    return { label: examples.labels[row], features }
  })
}

/** Rows as text, with indices from 0: `label index:value …`. */
export function textOf(rows: readonly PlainRow[]): string[] {
  return rows.map(({ label, features }) => [label, ...features.map(([i, value]) => `${i}:${value}`)].join(' '))
}

export async function plainStream(stream: AsyncIterable<Examples>): Promise<PlainRow[]> {
  const rows: PlainRow[] = []
  for await (const batch of stream) rows.push(...plainRows(batch))
  return rows
}

/** Parses a text in chunks of `chunk` bytes. */
export function parseText(
  format: TextFormat,
  text: string | Uint8Array,
  options: ParserOptions = {},
  chunk = Number.POSITIVE_INFINITY
): { rows: PlainRow[]; faults: string[]; dimension: number | undefined } {
  const faults: string[] = []
  const onMalformed = ({ line, column, reason }: Malformed) => faults.push(`${line}:${column}: ${reason}`)
  const parser = createParser(format, { onMalformed, ...options })
  const bytes = Buffer.from(text)
  const rows: PlainRow[] = []
  for (let from = 0; from < bytes.length; from += chunk) {
    // A copy that is overwritten afterwards, like the buffers of a file.
    const part = Uint8Array.from(bytes.subarray(from, Math.min(bytes.length, from + chunk)))
    rows.push(...plainRows(parser.push(part)))
    part.fill(0x22)
  }
  rows.push(...plainRows(parser.end()))
  return { rows, faults, dimension: parser.dimension }
}

/** Runs `use` with a function that writes files into a temporary directory. */
export async function withFiles<T>(
  use: (write: (name: string, content: string | Uint8Array) => Promise<string>, directory: string) => Promise<T>
): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'admb-streams-'))
  try {
    return await use(async (name, content) => {
      const path = join(directory, name)
      await writeFile(path, content)
      return path
    }, directory)
  } finally {
    await rm(directory, { recursive: true })
  }
}
