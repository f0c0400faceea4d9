/** Options of a parser, with defaults and limits, which are checked once before anything is read. */
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

/** Options of a parser. */
export interface ParserOptions extends ReporterOptions, DerivedHints {
  /** Name of the input in messages. @default '<input>' */
  readonly source?: string
  /** `class`: labels become class numbers 0 … C−1. `number`: regression, the label is the number itself. @default 'class' */
  readonly target?: 'class' | 'number'
  /** Number of classes C ≥ 2. Labels outside are malformed. @default the length of `classNames`, otherwise unknown */
  readonly classes?: number
  /** Label texts in the order of their class numbers. @default labels are class numbers, of which −1 counts as 0 */
  readonly classNames?: readonly string[]
  /**
   * Gives names that are not among `classNames` provisional labels, in the order of `Rows.newClasses`, instead of refusing them.
   * @default false
   */
  readonly newClasses?: boolean
  /** @internal Called with each label instead of converting it, to infer what the labels are. @default none */
  readonly onLabel?: (label: string) => void
  /** Keeps identifiers of rows: columns with the role `id`, and tags of VW. @default false */
  readonly ids?: boolean
  /** @internal Called with each hashed value or name and its feature, to explain models. @default none */
  readonly onHashed?: OnHashed
  /** @internal Columns whose first numbers have marks that may divide thousands, so that others are reported. @default not known */
  readonly grouped?: readonly string[]
  /** @internal What an ambiguous mark of a label that is a number means. @default '.' */
  readonly labelDecimal?: DecimalMark
  /** Accept inputs without a label, or with an invalid one in a table: their label is NaN. Otherwise they are malformed. @default false */
  readonly unlabelled?: boolean
  /** CSV column or JSON key of the label. @default 'label' */
  readonly label?: string
  /** CSV columns or JSON keys to leave out. @default none */
  readonly ignore?: readonly string[]
  /**
   * The columns of a table in the order of their features, which may be in another order in the file. A file must have all of
   * them; further columns are ignored. In JSON lines, each column is a key. @default CSV: inferred; JSON lines: names are hashed
   */
  readonly schema?: readonly ColumnSchema[]
  /** CSV without a schema: the columns that are numbers; every other one is a category. @default inferred */
  readonly columns?: readonly string[]
  /** CSV without a schema: columns that are categories although their values look like numbers. @default none */
  readonly categorical?: readonly string[]
  /** CSV without a schema: the column of the rows' weights. @default none */
  readonly weight?: string
  /** CSV without a schema: the column that identifies rows. @default none */
  readonly id?: string
  /** Texts of missing values of a table, besides the empty one. @default the usual marks in any case: NA, n/a, NaN, null, None, -, ?, … */
  readonly na?: readonly string[]
  /** CSV without a schema: what texts become, words or also pairs of neighbouring words. @default 'words' */
  readonly text?: 'words' | 'bigrams'
  /** CSV: the separator of fields. @default inferred from the first rows, or a comma */
  readonly delimiter?: Delimiter
  /** CSV: the decimal mark of numbers in which a mark is ambiguous. @default inferred for each column from the first rows, or a point */
  readonly decimal?: '.' | ','
  /**
   * CSV: whether the first line holds the names of the columns. Without a header, the names are `columns`, or the numbers
   * of the columns from 1. @default true
   */
  readonly header?: boolean
  /** Tables with a schema: whether a file may lack columns of features, whose values then count as missing. @default false */
  readonly lacksColumns?: boolean
  /** Adds feature 0, which is always 1, and increases the number of every other feature by one. @default false */
  readonly constant?: boolean
  /** Number of features without the constant one. Larger indices are malformed. @default inferred from the data, or unknown */
  readonly dimension?: number
  /** Leaves features that `dimension` excludes out of their rows instead of refusing the rows: the model has no weight for them. @default false */
  readonly ignoreUnknown?: boolean
  /**
   * Number of hashed features as a power of two, 1 … 30. Names are hashed into 2^hashBits features (default 18, as in VW).
   * LIBSVM indices and numeric VW names are not hashed but reduced modulo 2^hashBits if it is given.
   * @default 18 for hashed names
   */
  readonly hashBits?: number
}

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
