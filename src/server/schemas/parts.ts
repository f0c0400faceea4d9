/** What the schemas of several components contain. */

export const count = { type: 'integer', minimum: 0 } as const
export const number = { type: 'number' } as const
export const text = { type: 'string' } as const
export const texts = { type: 'array', items: text } as const

export function object<P extends Record<string, unknown>, O extends keyof P & string = never>(
  properties: P,
  optional: readonly O[] = []
) {
  const required = Object.keys(properties).filter(key => !(optional as readonly string[]).includes(key))
  return { type: 'object', properties, required, additionalProperties: false } as const
}

export const counts = { type: 'array', items: count } as const
export const share = { ...number, minimum: 0, maximum: 1 } as const

/** Figures over some inputs; those that a model does not have are absent. */
export const figures = {
  inputs: { ...count, description: 'Number of inputs that the figures are about.' },
  loss: { ...number, description: 'Mean loss in nats; half the mean squared error for model linear.' },
  accuracy: share,
  balancedAccuracy: { ...share, description: 'Mean over the classes of the share that was predicted correctly.' },
  auc: { ...share, description: 'Two classes: area under the ROC curve.' },
  logLoss: { ...number, description: 'Mean negative logarithm of the probability of the label, in nats.' },
  calibrationError: { ...share, description: 'Expected calibration error, over ten bins of the probability.' },
  confusion: {
    type: 'array',
    items: { type: 'array', items: count },
    description: 'Inputs by class (rows) and predicted class (columns), for at most 20 classes.'
  },
  rmse: { ...number, description: 'Root mean squared error, in units of the target.' },
  mae: { ...number, description: 'Mean absolute error, in units of the target.' },
  r2: { ...number, description: 'Share of the variance of the target that is predicted.' },
  perplexity: { ...number, description: 'Exponential of the loss of a model that predicts the next token.' }
} as const
export const optionalFigures = [
  'accuracy',
  'balancedAccuracy',
  'auc',
  'logLoss',
  'calibrationError',
  'confusion',
  'rmse',
  'mae',
  'r2',
  'perplexity'
] as const
