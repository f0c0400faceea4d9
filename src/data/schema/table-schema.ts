/** Schema of what inputs mean, as `admb schema` prints it and `--schema` reads it. The types and `GET /schema` follow from it. */
import * as z from 'zod'
import { count, type ValueOf } from '../../base/schema.js'

const text = z.string()
const number = z.number().optional()
const flag = z.boolean().optional()
const texts = z.array(text).optional()

export const columnSchema = z.object({
  name: text,
  kind: z
    .enum(['number', 'category', 'text', 'time', 'ignored', 'interaction'])
    .describe(
      'number: one feature. category: one hashed feature for each value. text: one hashed feature for each word. time: year, and month, weekday and hour on circles. ignored: no feature. interaction: the product of two numbers, the pair of two categories, or a number by category.'
    ),
  role: z
    .enum(['weight', 'id'])
    .optional()
    .describe(
      'The purpose of a column that is not a feature. weight: importance of the row, at least 0. id: returned with the prediction.'
    ),
  of: texts.describe('Interactions: two columns.'),
  missing: flag.describe('Numbers and times: whether a missing value sets a feature of its own.'),
  bigrams: flag.describe('Texts: whether pairs of neighbouring words are features as well as words.'),
  date: flag.describe('Numbers: whether values are dates, or times since 1970, which count as days since 1970.'),
  decimal: z
    .enum([',', 'both'])
    .optional()
    .describe('The mark that is decimal where a number such as 1,234 is ambiguous; both: no mark divides thousands.'),
  order: z.enum(['mdy', 'dmy', 'ymd']).optional().describe('Times: the order of the parts of ambiguous dates.'),
  origin: number.describe('What is subtracted before values become float32 numbers; of times, in days since 1970.'),
  na: texts.describe('Further texts of missing values; * for any text.'),
  mean: number.describe('Numbers: the value is centred by it.'),
  deviation: number.describe('Numbers: the value is divided by it.')
})
/**
 * A column of a table: its kind, and how its values become features.
 * @interface
 */
export type ColumnSchema = ValueOf<typeof columnSchema>
/** What the values of a column become. */
export type ColumnKind = ColumnSchema['kind']
/** The purpose of a column that is not a feature. */
export type ColumnRole = NonNullable<ColumnSchema['role']>
/** The order of the parts of ambiguous dates. */
export type DateOrder = NonNullable<ColumnSchema['order']>

const labelSchema = z.object({
  name: text.optional().describe('Column or key of the label; absent for formats without columns.'),
  kind: z.enum(['class', 'number']),
  names: texts.describe('Label texts in the order of their class numbers.'),
  classes: count
    .optional()
    .describe('Number of classes. More than there are names leave room for classes that are added.'),
  added: texts.describe('Classes that the network has added, in the order of their numbers.'),
  weights: z.record(text, z.number()).optional().describe('Factors of the gradients of inputs, by class.'),
  mean: number.describe('Numbers are centred by it.'),
  deviation: number.describe('Numbers are divided by it.')
})
/**
 * The label of a table: its column, and whether it is a class or a number.
 * @interface
 */
export type LabelSchema = ValueOf<typeof labelSchema>

export const tableSchema = z
  .object({
    label: labelSchema.optional(),
    columns: z.array(columnSchema).optional(),
    hashBits: count.optional().describe('Hashed values share 2^hashBits features, by default 2^18.'),
    external: z.literal(true).optional().describe('A program has the model and the inputs: there are no columns.')
  })
  .describe('What inputs mean: the label, and the columns of a table in the order of their features.')
/**
 * A whole schema.
 * @interface
 */
export type Schema = ValueOf<typeof tableSchema>

/** Pairs of columns or namespaces by their names, or all pairs of features of a row. */
export type Interactions = 'all' | readonly (readonly [string, string])[]
