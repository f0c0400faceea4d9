/**
 * The interface of streams of labelled inputs, which yield batches of bounded size in order, and the types that describe tables:
 * their schema and their dialect.
 */
import type { Rows } from './rows.js'
import type { ColumnSchema, Interactions, LabelSchema } from './schema/table-schema.js'

export type { ColumnKind, ColumnRole, ColumnSchema, Interactions, LabelSchema, Schema } from './schema/table-schema.js'

/** A malformed input, displayed as `file:line:column: reason`. */
export interface Malformed {
  readonly source: string
  /** 1-based. */
  readonly line: number
  /** 1-based column in bytes, 0 for the whole line. */
  readonly column: number
  readonly reason: string
  /** Number of well-formed inputs before it, in the same pass. */
  readonly index: number
}

/** Batches of rows, with what is known of the data. */
export interface ExampleStream extends AsyncIterable<Rows> {
  /** Number of features, including the constant one, if known before reading (IDX, CSV, built-in streams, hashing, `dimension`). */
  readonly dimension: number | undefined
  /** Number of classes, if known before reading. */
  readonly classes: number | undefined
  /**
   * All features are hashed into 2^hashBits, by an option or by default (VW, names in JSON lines). Streams of further inputs for
   * the same model need the same value. Undefined if features are not hashed, or if it is not known yet.
   */
  readonly hashBits: number | undefined
  /**
   * The columns of a table. Streams of further inputs for the same model need them as the option `schema`. Undefined for other
   * formats.
   */
  readonly schema: readonly ColumnSchema[] | undefined
  /** Mean number of features in the first rows of text, without the constant one, if they were read. */
  readonly featuresPerRow: number | undefined
  /** The features of rows without columns that are multiplied. Streams of further inputs for the same model need the same value. */
  readonly interactions: Interactions | undefined
  /** What the label is, if it was inferred. */
  readonly label: LabelSchema | undefined
  /** Labels of each class in the first rows, if they were counted. */
  readonly classCounts: readonly number[] | undefined
  /** How numbers are scaled: what the option says, or what `auto` means for these rows. */
  readonly scale: 'none' | 'standard'
  /** Names of new classes so far, of an input that gives them provisional labels. */
  readonly newClasses: readonly string[] | undefined
  /** What was inferred of label and columns, in one line. */
  readonly summary: string | undefined
  /** Whether the rows can be read again, so that a position has a meaning. */
  readonly isReplayable: boolean
  /** Number of inputs skipped as malformed so far, each in one shard. */
  readonly skipped: number
  /** The share of all passes, from 0 to 1, that has been read; undefined if the end is not known. */
  readonly share: number | undefined
}

/** A separator of CSV. */
export type Delimiter = ',' | ';' | '\t' | '|'

/** How a CSV file is written. */
export interface Dialect {
  /** @default the one that divides the first rows into the same number of fields, or a comma */
  readonly delimiter?: Delimiter
  /** @default that of each column */
  readonly decimal?: '.' | ','
  /** Whether the first line holds the names of the columns. @default true */
  readonly header?: boolean
}
