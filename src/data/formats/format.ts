/** What an entry of the registry of inputs consists of: file formats, text or binary, and built-in streams. */
import { choice, flag, number, type OptionsOf, text } from '../../base/option-types.js'
import type { Reporter } from '../errors.js'
import type { ParserOptions, SourceOptions } from '../options.js'
import type { Rows, Verified } from '../rows.js'
import type { SniffedDialect } from '../schema/dialect.js'
import type { ColumnSchema, Interactions, LabelSchema } from '../types.js'
import type { LabelReader } from './labels.js'
import type { RowFormat } from './lines.js'

export const inputTypes = {
  /** The labels file of IDX. @default the name of the images file with `labels` for `images` and `idx1` for `idx3`, with or without `.gz` */
  labels: text,
  /** Seed of the shuffle and of the built-in streams, a safe integer. @default 0 */
  seed: number,
  /**
   * Noise of `synthetic`: probability in [0, 0.5) that a class is flipped (default 0), or standard deviation ≥ 0 of a number's
   * noise (default 0.1).
   * @default 0
   */
  noise: number,
  /**
   * `standard`: numeric columns are centred and divided by the mean and standard deviation of their past. `auto`: the same for
   * tables whose schema does not scale their numbers. @default 'none'
   */
  scale: choice('none', 'standard', 'auto'),
  /**
   * Waits for more rows at the end of a file, as `tail -F` does, also when the file is rotated or truncated. Of a directory or
   * pattern, the last file is followed, and files with later names. @default false
   */
  follow: flag
}

/** Options of all inputs together. Each input takes some of them. */
export interface InputOptions extends ParserOptions, SourceOptions, OptionsOf<typeof inputTypes> {}

/** Options that tables take. */
export const TABLE_OPTIONS = [
  ...(['label', 'ignore', 'categorical', 'classNames', 'columns', 'schema', 'lacksColumns', 'weight', 'id'] as const),
  ...(['interactions', 'na', 'text', 'delimiter', 'decimal', 'header', 'unlabelled'] as const),
  ...(['dimension', 'classes', 'hashBits', 'scale'] as const)
]

/** Options that only some inputs take. An input that does not take an option refuses it. */
export type InputOption = (typeof TABLE_OPTIONS)[number] | 'labels' | 'noise'

/** An opened input, to which `openStream` adds passes, shards, shuffling, scaling and limits. */
export interface Reader {
  readonly dimension: number | undefined
  readonly classes: number | undefined
  readonly hashBits?: number
  /** As in `ExampleStream`. */
  readonly schema?: readonly ColumnSchema[]
  readonly label?: LabelSchema
  readonly classCounts?: readonly number[]
  readonly scale?: 'none' | 'standard'
  readonly featuresPerRow?: number
  readonly interactions?: Interactions
  readonly newClasses?: readonly string[]
  readonly summary?: string
  readonly skipped: number
  /** Whether `pass` may be called more than once. */
  readonly repeatable: boolean
  /** Whether another reader of the same input yields the same rows again. @default repeatable */
  readonly replayable?: boolean
  /** As in `Rows`. */
  readonly forwardOnly?: boolean
  /** Checks the `source` of a stored position. @default every position is valid */
  verify?(source: unknown): Promise<Verified>
  /** The `source` of the end, or of an offset. @throws StreamOptionsError @default none has a meaning */
  locate?(from: 'now' | number): Promise<unknown>
  /** Reads the input once, from its start or from the `source` of a position. */
  pass(source?: unknown): AsyncGenerator<Rows>
}

interface InputDefinition {
  /** One line for the command line's help. */
  readonly summary: string
  /** The options that it takes, of those that not every input takes. */
  readonly options: readonly InputOption[]
}

interface FileDefinition extends InputDefinition {
  /** Matches the names of files in this format: lower case, without directory, `.gz` and `.zst`. */
  readonly fileName: RegExp
}

/** A format of text, in which labels may be missing. Files and requests are read by its parser. */
export interface TextDefinition extends FileDefinition {
  readonly kind: 'text'
  /** Whether the first row determines the number of features, unless an option gives it. */
  readonly isSizedByFirstRow: boolean
  /** How tables are written, whose first rows determine the columns, unless an option gives them. @default not a table */
  readonly dialect?: SniffedDialect | 'sniffed'
  createRowParser(options: ParserOptions, reporter: Reporter): RowParser
}

/** The parser of the rows of a text format. */
export interface RowParser extends RowFormat {
  readonly dimension: number | undefined
  readonly hashBits: number | undefined
  readonly schema?: readonly ColumnSchema[]
  readonly labels: LabelReader
}

export interface BinaryDefinition extends FileDefinition {
  readonly kind: 'binary'
  /** @param path of a file that exists, or `-` */
  open(path: string, options: InputOptions): Promise<Reader>
}

/** A stream that needs no file. */
export interface BuiltInDefinition extends InputDefinition {
  /** @throws StreamOptionsError */
  open(options: InputOptions): Reader
}
