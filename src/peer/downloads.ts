/**
 * Downloads of the serving predictor, in the learner thread, which encodes them piece by piece: neither thread holds a whole file,
 * which may be larger than the memory.
 */

/** What a client of a download knows before its bytes. */
export interface DownloadHead {
  /** Name of the file. */
  readonly file: string
  /** Length in bytes. */
  readonly bytes: number
  /** Equal for equal bytes; undefined if the bytes change with every input (look-ahead average, running moments). */
  readonly etag: string | undefined
}

/** A predictor in a file format, for download. */
export interface Download extends DownloadHead {
  /** The file's bytes, once, in consecutive chunks. They throw UnavailableError if the peer stops meanwhile. */
  readonly chunks: AsyncIterable<Uint8Array>
  /** Ends the download. Call it if the chunks are not read, since the peer keeps the predictor until then. */
  cancel(): void
}

/** Number of a download, and its head. */
export type StartedDownload = DownloadHead & { readonly download: number }

/** A predictor in a file format, in the learner thread. */
export interface EncodedFile extends DownloadHead {
  /** The file's bytes, each chunk made when it is requested. */
  readonly chunks: Iterable<Uint8Array>
}

const PIECE_BYTES = 1 << 22

export class Downloads {
  /** Pieces of the downloads in progress, by number. */
  readonly #pieces = new Map<number, Iterator<Uint8Array>>()
  #last = 0

  /** Starts the download of a file. It ends with its last piece, or with `end`. */
  start({ chunks, ...head }: EncodedFile): StartedDownload {
    this.#pieces.set(++this.#last, piecesOf(chunks))
    return { ...head, download: this.#last }
  }

  /** The next piece; undefined at the end. */
  next(download: number): Uint8Array | undefined {
    const { value, done } = this.#pieces.get(download)?.next() ?? { done: true }
    if (done) this.end(download)
    return value
  }

  end(download: number): void {
    this.#pieces.delete(download)
  }
}

function* piecesOf(chunks: Iterable<Uint8Array>): Generator<Uint8Array> {
  for (const chunk of chunks)
    for (let from = 0; from < chunk.length; from += PIECE_BYTES) yield chunk.slice(from, from + PIECE_BYTES)
}
