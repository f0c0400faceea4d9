/** Schema of the answers to requests of inputs. Their types and the JSON schema follow from it. */
import * as z from 'zod'
import type { ValueOf } from '../base/schema.js'
import { predictorId } from './status.js'

const text = z.string()
const prediction = z.object({
  label: z.union([z.number(), text]).describe('Class number or name; the predicted number for regression.'),
  scores: z.array(z.number()).describe('The probability of each class, or the predicted number.'),
  id: text.optional().describe('With --label-delay: for POST /learn with {"id": …, "label": …}.'),
  rowId: text.optional().describe('Value of the column with the role id, or the tag of VW.')
})
/**
 * A prediction for an input.
 * @interface
 */
export type Prediction = ValueOf<typeof prediction>

const failedInput = z.object({
  error: text.describe('Why the input cannot be scored, or the label not be learned.'),
  id: text.optional().describe('Of the prediction whose label was refused.'),
  code: text.optional()
})
/**
 * Why an input cannot be scored, or a late label cannot be learned.
 * @interface
 */
export type FailedInput = ValueOf<typeof failedInput>

export const answerSchema = z
  .object({ predictions: z.array(z.union([prediction, failedInput])), predictor: predictorId })
  .describe(
    'A prediction for each input, in order, by the serving predictor at the time of the request. For a label that arrived later, the prediction that was given, or an error in its place.'
  )
/**
 * Answers to a request of inputs.
 * @interface
 */
export type InputAnswer = ValueOf<typeof answerSchema>
