/** The types that describe tables: their schema and their dialect. */

/**
 * `number`: one feature. `category`: one hashed feature for each value. `text`: one hashed feature for each word. `time`: year, and
 * month, weekday and hour on circles. `ignored`: no feature.
 */
export type ColumnKind = 'number' | 'category' | 'text' | 'time' | 'ignored'

/** A column of a table: its kind, and how its values become features. */
export interface ColumnSchema {
  readonly name: string
  readonly kind: ColumnKind
  /** Numbers and times: a missing value sets a feature of its own. @default false */
  readonly missing?: boolean
  /** Texts: pairs of neighbouring words are features as well as words. @default false */
  readonly bigrams?: boolean
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
  /** Number of classes. @default the number of names */
  readonly classes?: number
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
  /** @default a comma if numbers have one and fields are not divided by it */
  readonly decimal?: '.' | ','
  /** Whether the first line holds the names of the columns. @default true */
  readonly header?: boolean
}
