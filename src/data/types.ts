/**
 * The interface of streams of labelled inputs, which yield batches of bounded size in order, and the types that describe tables:
 * their schema and their dialect.
 */
import type { Rows } from './rows.js'
import type { DateOrder } from './schema/times.js'

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

/**
 * `number`: one feature. `category`: one hashed feature for each value. `text`: one hashed feature for each word. `time`: year, and
 * month, weekday and hour on circles. `ignored`: no feature. `interaction`: the product of two numbers, the pair of two categories,
 * or a number by category.
 */
export type ColumnKind = 'number' | 'category' | 'text' | 'time' | 'ignored' | 'interaction'

/**
 * The purpose of a column that is not a feature. `weight`: the importance of the row, a number of at least 0. `id`: an identifier,
 * which is returned with the prediction.
 */
export type ColumnRole = 'weight' | 'id'

/** A column of a table: its kind, and how its values become features. */
export interface ColumnSchema {
  readonly name: string
  readonly kind: ColumnKind
  /** @default a feature */
  readonly role?: ColumnRole
  /** Interactions: two columns. */
  readonly of?: readonly string[]
  /** Numbers and times: a missing value sets a feature of its own. @default false */
  readonly missing?: boolean
  /** Texts: pairs of neighbouring words are features as well as words. @default false */
  readonly bigrams?: boolean
  /** Numbers: the values are dates, or times since 1970, and count as days since 1970. @default false */
  readonly date?: boolean
  /**
   * Numbers that are texts: the mark that is decimal where a number such as 1,234 is ambiguous, if a file does not show it. `both`: no
   * mark divides thousands. @default '.'
   */
  readonly decimal?: ',' | 'both'
  /** Times: the order of the parts of ambiguous dates, if a file does not show it. @default month first with slashes, otherwise day first */
  readonly order?: DateOrder
  /**
   * Numbers and times: what is subtracted before values become float32 numbers, for numbers that differ little for their size. Times: in
   * days since 1970. @default 0; times: the year 2000
   */
  readonly origin?: number
  /** Numbers and times: further texts of missing values; `*` for any text. @default none */
  readonly na?: readonly string[]
  /** Numbers: the value is centred by `mean` and divided by `deviation`, which is above 0. @default not scaled */
  readonly mean?: number
  readonly deviation?: number
}

/** The label of a table: its column, and whether it is a class or a number. */
export interface LabelSchema {
  /** Undefined for formats without columns. */
  readonly name?: string
  readonly kind: 'class' | 'number'
  /** Label texts in the order of their class numbers. @default class numbers */
  readonly names?: readonly string[]
  /** Number of classes. More than there are names leave room for classes that are added later. @default the number of names */
  readonly classes?: number
  /** Classes that a peer's network has added, which other peers learn from it. */
  readonly added?: readonly string[]
  /** Factors of the gradients of inputs by class name or number. @default 1 */
  readonly weights?: Readonly<Record<string, number>>
  /** Numbers: `linear` learns (y − mean)/deviation. @default not scaled */
  readonly mean?: number
  readonly deviation?: number
}

/** A whole schema, as `admb schema` prints it and `--schema` reads it. */
export interface Schema {
  readonly label?: LabelSchema
  readonly columns?: readonly ColumnSchema[]
  /** Hashed values share 2^hashBits features. @default 18 */
  readonly hashBits?: number
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
