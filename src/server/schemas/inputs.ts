/** Inputs, their schema, and predictions, and what the schemas of several components contain. */

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

export const inputs = [
  {
    $id: 'Input',
    type: 'object',
    description:
      'An input: `{"label": …, "features": {…}}`, `{"label": …, "features": […]}`, or a flat object in which every key except the label is a feature. Keys are feature numbers, or names if features are columns or hashed.',
    examples: [{ label: 1, features: { 3: 0.5 } }]
  },
  {
    $id: 'Predictions',
    description:
      'A prediction for each input, in order, by the serving predictor at the time of the request. For a label that arrived later, the prediction that was given, or an error in its place.',
    ...object({
      predictions: {
        type: 'array',
        items: {
          anyOf: [
            object(
              {
                label: {
                  type: ['number', 'string'],
                  description: 'Class number or name; the predicted number for regression.'
                },
                scores: {
                  type: 'array',
                  items: number,
                  description: 'The probability of each class, or the predicted number.'
                },
                id: { ...text, description: 'With --label-delay: for POST /learn with {"id": …, "label": …}.' },
                rowId: { ...text, description: 'Value of the column with the role id, or the tag of VW.' }
              },
              ['id', 'rowId']
            ),
            object(
              {
                error: { ...text, description: 'Why the input cannot be scored, or the label not be learned.' },
                id: text,
                code: text
              },
              ['id', 'code']
            )
          ]
        }
      },
      predictor: { $ref: 'PredictorId#' }
    })
  },
  {
    $id: 'Schema',
    description: 'What inputs mean: the label, and the columns of a table in the order of their features.',
    ...object(
      {
        label: object(
          {
            name: { ...text, description: 'Column or key of the label.' },
            kind: { enum: ['class', 'number'] },
            names: { ...texts, description: 'Class names in the order of their class numbers.' },
            classes: { ...count, description: 'Number of classes, including those that can be added.' },
            added: { ...texts, description: 'Classes that were added, in the order of their numbers.' },
            weights: {
              type: 'object',
              additionalProperties: number,
              description: 'Factors of the gradients of inputs, by class.'
            },
            mean: { ...number, description: 'Numbers are centred by it.' },
            deviation: { ...number, description: 'Numbers are divided by it.' }
          },
          ['name', 'names', 'classes', 'added', 'weights', 'mean', 'deviation']
        ),
        columns: {
          type: 'array',
          items: object(
            {
              name: text,
              kind: { enum: ['number', 'category', 'text', 'time', 'ignored', 'interaction', 'lag'] },
              role: { enum: ['weight', 'id', 'time'], description: 'The purpose of a column that is not a feature.' },
              of: { ...texts, description: 'Interactions: two columns. Lags: a number, or the label.' },
              rows: { ...count, description: 'Lags: how many rows earlier.' },
              missing: { type: 'boolean', description: 'Whether a missing value has a feature of its own.' },
              bigrams: { type: 'boolean', description: 'Whether pairs of words are features.' },
              date: { type: 'boolean', description: 'Whether values are dates, which count as days since 1970.' },
              decimal: { enum: [',', 'both'], description: 'Marks that are decimal where a number is ambiguous.' },
              order: { enum: ['mdy', 'dmy', 'ymd'], description: 'The order of the parts of ambiguous dates.' },
              origin: { ...number, description: 'It is subtracted from the value before all else.' },
              na: { ...texts, description: 'Further texts of missing values.' },
              mean: { ...number, description: 'The value is centred by it.' },
              deviation: { ...number, description: 'The value is divided by it.' }
            },
            [
              'role',
              'of',
              'rows',
              'missing',
              'bigrams',
              'date',
              'decimal',
              'order',
              'origin',
              'na',
              'mean',
              'deviation'
            ]
          )
        },
        hashBits: { ...count, description: 'Hashed values share 2^hashBits features.' }
      },
      ['label', 'columns', 'hashBits']
    )
  }
] as const
