/** Options of a stream, and their types for the functions that programs call. */
import {
  choice,
  either,
  flag,
  list,
  number,
  type OptionsOf,
  object,
  options,
  text,
  typed
} from '../base/option-types.js'
import { reporterTypes } from './errors.js'
import type { TokenRows } from './formats/builtins.js'
import type { CustomFormat } from './formats/custom.js'
import { type InputOptions, inputTypes } from './formats/format.js'
import type { Format } from './formats/formats.js'
import { parserTypes, sourceTypes } from './options.js'
import type { Scaling } from './prepare.js'
import type { From, StreamPosition } from './rows.js'
import type { Shard } from './stages.js'

const ownTypes = {
  /** @default guessed from the file's name */
  format: typed<Format | CustomFormat>(text),
  /** The share of the rows of each pass, with an index from 0. @default all rows */
  shard: object<Shard>('{ index: 0, count: 2 }'),
  /** Rows for validation, of those of the shard: `learn` leaves every n-th out, `validate` yields only these. @default all rows */
  holdout: object<{ readonly every: number; readonly part: 'learn' | 'validate' }>("{ every: 10, part: 'learn' }"),
  /** How many times the input is read; may be `Infinity`. @default 1 */
  passes: number,
  /** Keeps the parsed rows of files in the user's cache folder, and reads them from there in later runs. @default false */
  cache: flag,
  /** Rows in the shuffle's window, up to 1,000,000. @default no shuffle */
  shuffleWindow: number,
  /** The state by which numbers are standardised. @default that of this stream alone */
  scaling: object<Scaling>('that of another stream'),
  /** Rows are not scaled and not multiplied, because a later stage does it. @default false */
  scaleLater: flag,
  /** Where the stream begins. @default 'stored' */
  from: typed<From>(either(choice('start', 'now', 'stored'), number)),
  /** The stored position: of an earlier stream of these rows, or the number of its rows. @default the start */
  resume: either(number, object<StreamPosition>('the position of an earlier stream')),
  /** Number of rows after which the stream ends, including those before `resume`. @default at the end of the input */
  maxRows: number,
  /** Infers from the first rows of text whether the label is a class or a number, and the names of the classes. @default false */
  inferLabel: flag,
  /** Largest number of classes, including those that the first rows of text lack. @default those of the first rows */
  classesMax: number,
  /** Counts the labels of each class in the first rows of text. @default false */
  countClasses: flag,
  /** `hashBits` of a table with categories or texts, if that is not given. @default 18 */
  tableHashBits: number,
  /** Rows of tokens that `data` was already converted into. If given, `data` is not read. @default none */
  tokens: object<TokenRows>('rows of tokens')
}

/** Options of a stream: where its rows come from, and in which order and scale. */
export interface StreamOptions extends InputOptions, OptionsOf<typeof ownTypes> {
  /** A file, `-` for standard input, or a built-in stream: `digits`, `digits:test`, `synthetic`. */
  readonly data: string
}

export const streamType = options<StreamOptions>(
  {
    ...reporterTypes,
    ...parserTypes,
    ...sourceTypes,
    ...inputTypes,
    ...ownTypes,
    interactions: either(choice('all'), list),
    data: text
  },
  ['data']
)
