/** The first bytes of standard input, from which a schema is inferred before the rest is read. */
import { Readable } from 'node:stream'

/** Bytes that suffice. */
const HEAD_BYTES = 1 << 20
/** Time in ms after the first byte in which a slow source fills the head. */
const HEAD_MS = 3000

export interface Head {
  /** A stream of the first bytes, to infer from; each call returns a new one. */
  readonly sample: () => Readable
  /** All bytes, the first ones included. */
  readonly whole: Readable
}

/** Reads until there are 1 MiB, the input ends, or 3 s after its first byte. A last row that is cut counts as malformed in the sample. */
export async function headOf(input: Readable): Promise<Head> {
  const blocks: Uint8Array[] = []
  const iterator = input[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  let bytes = 0
  let pending = iterator.next()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    void pending.then(() => {
      timer = setTimeout(() => resolve(undefined), HEAD_MS)
    })
  })
  for (;;) {
    const next = await Promise.race([pending, late])
    if (next === undefined || next.done) break
    blocks.push(next.value)
    bytes += next.value.length
    pending = iterator.next()
    if (bytes >= HEAD_BYTES) break
  }
  clearTimeout(timer)
  async function* all() {
    yield* blocks
    for (let next = await pending; !next.done; next = await iterator.next()) yield next.value
  }
  return { sample: () => Readable.from(blocks), whole: Readable.from(all()) }
}
