/** Inputs, their schema, and predictions. */
import * as z from 'zod'
import { count } from '../../base/schema.js'
import { predictorId } from '../../peer/index.js'

const text = z.string()
const number = z.number().optional()
const flag = z.boolean().optional()
const texts = z.array(text).optional()

export const input = z
  .looseObject({})
  .describe(
    'An input: `{"label": …, "features": {…}}`, `{"label": …, "features": […]}`, or a flat object in which every key except the label is a feature. Keys are feature numbers, or names if features are columns or hashed.'
  )
  .meta({ examples: [{ label: 1, features: { 3: 0.5 } }] })

const prediction = z.object({
  label: z.union([z.number(), text]).describe('Class number or name; the predicted number for regression.'),
  scores: z.array(z.number()).describe('The probability of each class, or the predicted number.'),
  id: text.optional().describe('With --label-delay: for POST /learn with {"id": …, "label": …}.'),
  rowId: text.optional().describe('Value of the column with the role id, or the tag of VW.')
})

const failedInput = z.object({
  error: text.describe('Why the input cannot be scored, or the label not be learned.'),
  id: text.optional(),
  code: text.optional()
})

export const predictions = z
  .object({ predictions: z.array(z.union([prediction, failedInput])), predictor: predictorId })
  .describe(
    'A prediction for each input, in order, by the serving predictor at the time of the request. For a label that arrived later, the prediction that was given, or an error in its place.'
  )

const label = z.object({
  name: text.optional().describe('Column or key of the label.'),
  kind: z.enum(['class', 'number']),
  names: texts.describe('Class names in the order of their class numbers.'),
  classes: count.optional().describe('Number of classes, including those that can be added.'),
  added: texts.describe('Classes that were added, in the order of their numbers.'),
  weights: z.record(text, z.number()).optional().describe('Factors of the gradients of inputs, by class.'),
  mean: number.describe('Numbers are centred by it.'),
  deviation: number.describe('Numbers are divided by it.')
})

const column = z.object({
  name: text,
  kind: z.enum(['number', 'category', 'text', 'time', 'ignored', 'interaction', 'lag']),
  role: z.enum(['weight', 'id']).optional().describe('The purpose of a column that is not a feature.'),
  of: texts.describe('Interactions: two columns. Lags: a number, or the label.'),
  rows: count.optional().describe('Lags: how many rows earlier.'),
  missing: flag.describe('Whether a missing value has a feature of its own.'),
  bigrams: flag.describe('Whether pairs of words are features.'),
  date: flag.describe('Whether values are dates, which count as days since 1970.'),
  decimal: z.enum([',', 'both']).optional().describe('Marks that are decimal where a number is ambiguous.'),
  order: z.enum(['mdy', 'dmy', 'ymd']).optional().describe('The order of the parts of ambiguous dates.'),
  origin: number.describe('It is subtracted from the value before all else.'),
  na: texts.describe('Further texts of missing values.'),
  mean: number.describe('The value is centred by it.'),
  deviation: number.describe('The value is divided by it.')
})

export const schema = z
  .object({
    label,
    columns: z.array(column).optional(),
    hashBits: count.optional().describe('Hashed values share 2^hashBits features.')
  })
  .describe('What inputs mean: the label, and the columns of a table in the order of their features.')
