/**
 * Positions: where in its input a stream has arrived. They are plain data, which is stored with a peer's state, so that a restart
 * neither skips nor repeats rows. A position says where the source can be reopened, and how many rows to skip after it.
 */

/** A position within one pass over the input. */
export interface PassPosition {
  /** Where the reader can reopen the source, in a form that only the reader knows; undefined for the start of the pass. */
  readonly source?: unknown
  /** Rows of the pass before `source`. */
  readonly row: number
  /** Rows after `source` that have been read. */
  readonly skip: number
}

/** A position in a stream. */
export interface StreamPosition extends PassPosition {
  /** Rows that the stream has yielded. */
  readonly rows: number
  /** Passes that are complete. */
  readonly pass: number
  /** With a shuffle: the state of its generator at the start of the pass, and the rows of the pass that it has yielded. */
  readonly shuffled?: { readonly random: readonly number[]; readonly rows: number }
}

/**
 * Where a stream begins: `start`, `now` (at the end of what the source holds, for new rows only), `stored` (the position given by
 * `resume`, otherwise the start), or an offset in bytes of an uncompressed file.
 */
export type From = 'start' | 'now' | 'stored' | number

/** The position in the source after the first `count` rows of a batch, and the number of rows to skip after it. */
export type Mark = (count: number) => { readonly source: unknown; readonly skip: number }

/** A check of a stored position. */
export interface Verified {
  /** The position to start at. */
  readonly source: unknown
  /** Whether it is in the input that the position was taken from. Otherwise nothing of the new input has been read. */
  readonly isSame: boolean
  /** One line for the log. */
  readonly notice?: string
}
