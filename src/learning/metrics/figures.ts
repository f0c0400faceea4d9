/** Schemas of the figures of scored inputs. All but `inputs` weigh an input by its importance. */
import * as z from 'zod'
import { count, share, type ValueOf } from '../../base/schema.js'

export const figuresSchema = z.object({
  inputs: count.describe('Number of inputs that the figures are about.'),
  loss: z.number().describe('Mean loss in nats; half the mean squared error for model linear.'),
  accuracy: share.optional().describe('Share of inputs whose class was predicted correctly before they were learned.'),
  balancedAccuracy: share
    .optional()
    .describe('Mean over the classes that occur of the share that was predicted correctly.'),
  auc: share
    .optional()
    .describe('Two classes: area under the ROC curve, the probability that an input of class 1 scores higher.'),
  logLoss: z.number().optional().describe('Mean negative logarithm of the probability of the label, in nats.'),
  calibrationError: share
    .optional()
    .describe(
      'Expected calibration error over ten bins of the probability (Naeini, Cooper and Hauskrecht, AAAI 2015).'
    ),
  confusion: z
    .array(z.array(count))
    .optional()
    .describe('Inputs by class (rows) and predicted class (columns), for at most 20 classes.'),
  rmse: z.number().optional().describe('Root mean squared error, in units of the target.'),
  mae: z.number().optional().describe('Mean absolute error, in units of the target.'),
  r2: z
    .number()
    .optional()
    .describe('Share of the variance of the target that is predicted; absent if all targets are equal.'),
  perplexity: z.number().optional().describe('Exponential of the loss of a model that predicts the next token.')
})
/**
 * Figures over some inputs, each scored before it was learned. Figures that a model does not have are absent.
 * @interface
 */
export type Figures = ValueOf<typeof figuresSchema>

const windowFigures = figuresSchema.extend({
  window: count.describe('Size of the window, which holds fewer inputs at the start.')
})
/**
 * Figures over the last inputs.
 * @interface
 */
export type WindowFigures = ValueOf<typeof windowFigures>

const timeWindowFigures = figuresSchema.extend({ seconds: z.number().describe('Length of the window.') })
/**
 * Figures over the inputs within some time.
 * @interface
 */
export type TimeWindowFigures = ValueOf<typeof timeWindowFigures>

const timeFigures = z.object({ clock: z.literal('arrival'), windows: z.array(timeWindowFigures) })
/**
 * Figures over windows that end now.
 * @interface
 */
export type TimeFigures = ValueOf<typeof timeFigures>

export const metricsSchema = z
  .object({
    total: figuresSchema,
    recent: z
      .array(windowFigures)
      .describe('Figures over the last 1,000 and the last 10,000 inputs, or fewer at the start.'),
    byTime: timeFigures.optional().describe('Windows by the time of arrival, which end now, in a peer.')
  })
  .describe('Progressive figures of this run: each input is scored before it is learned.')
/**
 * The figures of a learner: since its start, and over windows.
 * @interface
 */
export type Metrics = ValueOf<typeof metricsSchema>

export const baselineSchema = z
  .object({
    accuracy: share.optional().describe('Share of the most frequent class.'),
    rmse: z.number().optional().describe('Root mean squared error of the mean.'),
    loss: z.number().describe('Loss of the best constant prediction.'),
    previous: z
      .object({ accuracy: share.optional(), rmse: z.number().optional() })
      .describe('The same of the label of the row before as the prediction.')
  })
  .describe('What predictions that learn nothing reach on the labels of this run.')
/**
 * What predictions that learn nothing reach. Figures of numbers are in units of the target.
 * @interface
 */
export type BaselineFigures = ValueOf<typeof baselineSchema>
