/**
 * Exact numbers of bytes out of a source's chunks, for binary formats.
 */
export class ByteReader {
  readonly #source: AsyncGenerator<Uint8Array>
  #chunk: Uint8Array = new Uint8Array(0)
  #buffer = new Uint8Array(0)

  constructor(source: AsyncGenerator<Uint8Array>) {
    this.#source = source
  }

  /** @returns the next `length` bytes, fewer at the end of the source; valid until the next call */
  async read(length: number): Promise<Uint8Array> {
    if (this.#buffer.length < length) this.#buffer = new Uint8Array(length)
    let filled = 0
    while (filled < length) {
      if (this.#chunk.length === 0) {
        const { done, value } = await this.#source.next()
        if (done) break
        this.#chunk = value
      }
      const part = this.#chunk.subarray(0, length - filled)
      this.#buffer.set(part, filled)
      this.#chunk = this.#chunk.subarray(part.length)
      filled += part.length
    }
    return this.#buffer.subarray(0, filled)
  }

  async close(): Promise<void> {
    await this.#source.return(undefined)
  }
}
