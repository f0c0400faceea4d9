/** Options of a parser, with defaults and limits, which are checked once before anything is read. */
import type { Readable } from 'node:stream'
import type { OnNotice } from '../base/errors.js'
import {
  callback,
  choice,
  flag,
  list,
  number,
  type OptionsOf,
  object,
  text,
  texts,
  typed
} from '../base/option-types.js'
import { type ReporterOptions, StreamOptionsError } from './errors.js'
import type { DecimalMark } from './schema/numbers.js'
import type { DerivedHints } from './schema/schema.js'
import type { ColumnSchema, Delimiter } from './types.js'

/** Limit of a line's length, so that a file without newlines does not fill the memory. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024
/** Feature numbers are below this limit, including the constant feature. */
export const MAX_DIMENSION = 2 ** 31 - 1

/**
 * Receives a hashed value of a table, or a feature with a hashed name, whose column is then its namespace in VW.
 * @param feature its number, the constant feature included
 * @param value a category, a word, or two words with a space between, or the name of a feature; undefined for a missing category
 */
export type OnHashed = (feature: number, column: ColumnSchema, value: string | undefined) => void

export const parserTypes = {
  /** Name of the input in messages. @default '<input>' */
  source: text,
  /** `class`: labels become class numbers 0 … C−1. `number`: regression, the label is the number itself. @default 'class' */
  target: choice('class', 'number'),
  /** Number of classes C ≥ 2. Labels outside are malformed. @default the length of `classNames`, otherwise unknown */
  classes: number,
  /** Label texts in the order of their class numbers. @default labels are class numbers, of which −1 counts as 0 */
  classNames: texts,
  /**
   * Gives names that are not among `classNames` provisional labels, in the order of `Rows.newClasses`, instead of refusing them.
   * @default false
   */
  newClasses: flag,
  /** @internal Called with each label instead of converting it, to infer what the labels are. @default none */
  onLabel: typed<(label: string) => void>(callback),
  /** Keeps identifiers of rows: columns with the role `id`, and tags of VW. @default false */
  ids: flag,
  /** @internal Called with each hashed value or name and its feature, to explain models. @default none */
  onHashed: typed<OnHashed>(callback),
  /** @internal Columns whose first numbers have marks that may divide thousands, so that others are reported. @default not known */
  grouped: texts,
  /** @internal What an ambiguous mark of a label that is a number means. @default '.' */
  labelDecimal: typed<DecimalMark>(text),
  /** Accept inputs without a label, or with an invalid one in a table: their label is NaN. Otherwise they are malformed. @default false */
  unlabelled: flag,
  /** CSV column or JSON key of the label. @default 'label' */
  label: text,
  /** CSV columns or JSON keys to leave out. @default none */
  ignore: texts,
  /**
   * The columns of a table in the order of their features, which may be in another order in the file. A file must have all of
   * them; further columns are ignored. In JSON lines, each column is a key. @default CSV: inferred; JSON lines: names are hashed
   */
  schema: typed<readonly ColumnSchema[]>(list),
  /** CSV without a schema: the columns that are numbers; every other one is a category. @default inferred */
  columns: texts,
  /** CSV without a schema: columns that are categories although their values look like numbers. @default none */
  categorical: texts,
  /** CSV without a schema: the column of the rows' weights. @default none */
  weight: text,
  /** CSV without a schema: the column that identifies rows. @default none */
  id: text,
  /** Texts of missing values of a table, besides the empty one. @default the usual marks in any case: NA, n/a, NaN, null, None, -, ?, … */
  na: texts,
  /** CSV without a schema: what texts become, words or also pairs of neighbouring words. @default 'words' */
  text: choice('words', 'bigrams'),
  /** CSV: the separator of fields. @default inferred from the first rows, or a comma */
  delimiter: typed<Delimiter>(text),
  /** CSV: the decimal mark of numbers in which a mark is ambiguous. @default inferred for each column from the first rows, or a point */
  decimal: choice('.', ','),
  /**
   * CSV: whether the first line holds the names of the columns. Without a header, the names are `columns`, or the numbers
   * of the columns from 1. @default true
   */
  header: flag,
  /** Tables with a schema: whether a file may lack columns of features, whose values then count as missing. @default false */
  lacksColumns: flag,
  /** Adds feature 0, which is always 1, and increases the number of every other feature by one. @default false */
  constant: flag,
  /** Number of features without the constant one. Larger indices are malformed. @default inferred from the data, or unknown */
  dimension: number,
  /** Leaves features that `dimension` excludes out of their rows instead of refusing the rows: the model has no weight for them. @default false */
  ignoreUnknown: flag,
  /**
   * Number of hashed features as a power of two, 1 … 30. Names are hashed into 2^hashBits features (default 18, as in VW).
   * LIBSVM indices and numeric VW names are not hashed but reduced modulo 2^hashBits if it is given.
   * @default 18 for hashed names
   */
  hashBits: number
}

/** Options of a parser. */
export interface ParserOptions extends ReporterOptions, DerivedHints, OptionsOf<typeof parserTypes> {}

export const sourceTypes = {
  /** Standard input. @default that of the process */
  stdin: object<Readable>('a Readable'),
  /** Encoding of the text, such as `windows-1252`. @default UTF-8, or UTF-16 if it begins with a byte order mark */
  encoding: text,
  /** Aborts reading with the signal's reason. @default none */
  signal: object<AbortSignal>('that of an AbortController'),
  /**
   * Called now and then with the share of the input, from 0 to 1, that has been read. Not called if its size is unknown.
   * @default none
   */
  onRead: typed<(share: number) => void>(callback),
  /** Called with one line for the log, such as that a file was rotated. @default none */
  onNotice: typed<OnNotice>(callback)
}

/** Options of the bytes of an input. */
export interface SourceOptions extends OptionsOf<typeof sourceTypes> {}

/** @throws StreamOptionsError with the option, its value and the allowed range */
export function checkInteger(name: string, value: number | undefined, from: number, to: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= from && value <= to)) return
  throw new StreamOptionsError(`${name} is ${value}: give an integer from ${from} to ${to}`)
}

/** @throws StreamOptionsError for values out of range or options that contradict each other */
export function checkParserOptions({ classes, classNames, dimension, hashBits, target }: ParserOptions): void {
  checkInteger('classes', classes, 2, 2 ** 24)
  checkInteger('dimension', dimension, 1, MAX_DIMENSION - 1)
  checkInteger('hashBits', hashBits, 1, 30)
  if (target === 'number' && (classes !== undefined || classNames !== undefined)) {
    throw new StreamOptionsError('target number has no classes: remove classes and classNames')
  }
  if (classNames !== undefined && new Set(classNames).size !== classNames.length) {
    throw new StreamOptionsError(`classNames ${classNames.join(', ')}: name each class once`)
  }
  if (classNames !== undefined && classes !== undefined && classNames.length !== classes) {
    throw new StreamOptionsError(`classNames has ${classNames.length} names for ${classes} classes: name every class`)
  }
  if (dimension !== undefined && hashBits !== undefined) {
    throw new StreamOptionsError('dimension and hashBits contradict each other: give hashBits alone')
  }
}

/** Adds the constant feature to a number of features. */
export function withConstant(dimension: number | undefined, options: ParserOptions): number | undefined {
  return dimension === undefined ? undefined : dimension + (options.constant ? 1 : 0)
}
