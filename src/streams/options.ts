/**
 * What may be asked of a parser, with defaults and limits, checked once before anything is read.
 */
import { StreamOptionsError } from './errors.js'
import type { ReporterOptions } from './reporter.js'

export type TextFormat = 'libsvm' | 'vw' | 'csv' | 'jsonl'

/** A longer line is an error, lest a file without newlines fill the memory. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024
/** Feature numbers stay below this, the constant feature included. */
export const MAX_DIMENSION = 2 ** 31 - 1

export interface ParserOptions extends ReporterOptions {
  /** Name of the input in messages. Default `<input>`. */
  readonly source?: string
  /** `class` (default): labels become class numbers 0 … C−1. `number`: regression, the label is the number itself. */
  readonly target?: 'class' | 'number'
  /** Number of classes C ≥ 2: a label outside is malformed. Default: the length of `classNames`, otherwise unknown. */
  readonly classes?: number
  /**
   * Label texts in the order of their class numbers. Default: numeric labels are class numbers (−1 counts as 0), other
   * texts are numbered by first appearance; peers that read different files must give the names, lest their orders differ.
   */
  readonly classNames?: readonly string[]
  /** Inputs may lack a label, which then reads as NaN. Default false: they are malformed. */
  readonly unlabelled?: boolean
  /** CSV column or JSON key of the label. Default `label`. */
  readonly label?: string
  /** CSV columns or JSON keys to leave out. Default none. */
  readonly ignore?: readonly string[]
  /**
   * Numeric CSV columns in the order of their feature numbers, as `ExampleStream.columns` told when a model was begun: so
   * that files with columns in another order, and JSON objects with the columns' names as keys, mean the same features.
   * Every other column or key is a category. Default: as the CSV header and first row tell.
   */
  readonly columns?: readonly string[]
  /** CSV columns whose values are categories though they look like numbers. Default none. */
  readonly categorical?: readonly string[]
  /** Adds a feature that is always 1, as number 0; all others move up by one. Default false. */
  readonly constant?: boolean
  /** Number of features without the constant one: a larger index is malformed. Default: unknown, or as the data tell. */
  readonly dimension?: number
  /**
   * Size of the space of hashed features as a power of two, 1 … 30. Names are hashed into 2^hashBits features (default 18,
   * as in VW); LIBSVM indices and numeric VW names, which need no hashing, are taken modulo 2^hashBits where it is given.
   */
  readonly hashBits?: number
}

/** @throws StreamOptionsError naming the option, what it was and what it may be */
export function checkInteger(name: string, value: number | undefined, from: number, to: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= from && value <= to)) return
  throw new StreamOptionsError(`${name} is ${value}: give an integer from ${from} to ${to}`)
}

/** @throws StreamOptionsError */
export function checkParserOptions(format: TextFormat, options: ParserOptions): void {
  const { classes, classNames, dimension, hashBits, target } = options
  checkInteger('classes', classes, 2, 2 ** 24)
  checkInteger('dimension', dimension, 1, MAX_DIMENSION - 1)
  checkInteger('hashBits', hashBits, 1, 30)
  if (target === 'number' && (classes !== undefined || classNames !== undefined)) {
    throw new StreamOptionsError('target number has no classes: leave classes and classNames out')
  }
  if (classNames !== undefined && new Set(classNames).size !== classNames.length) {
    throw new StreamOptionsError(`classNames ${classNames.join(', ')}: name each class once`)
  }
  if (classNames !== undefined && classes !== undefined && classNames.length !== classes) {
    throw new StreamOptionsError(`classNames has ${classNames.length} names for ${classes} classes: name every class`)
  }
  if (dimension !== undefined && (hashBits !== undefined || format === 'vw')) {
    throw new StreamOptionsError('dimension does not go with hashed features: give hashBits alone')
  }
  if (options.columns !== undefined && format !== 'csv' && format !== 'jsonl') {
    throw new StreamOptionsError(`columns names CSV columns or JSON keys: leave it out for ${format}`)
  }
  if (options.categorical !== undefined && format !== 'csv') {
    throw new StreamOptionsError(`categorical names CSV columns: leave it out for ${format}`)
  }
  if (options.ignore !== undefined && format !== 'csv' && format !== 'jsonl') {
    throw new StreamOptionsError(`ignore names CSV columns or JSON keys: leave it out for ${format}`)
  }
}

/** Feature count with the constant feature, from a count without. */
export function withConstant(dimension: number | undefined, options: ParserOptions): number | undefined {
  return dimension === undefined ? undefined : dimension + (options.constant ? 1 : 0)
}
