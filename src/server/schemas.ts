/**
 * The JSON schemas of requests and answers. Requests are validated against them, answers are in the tests, and
 * `GET /openapi.json` contains them. Schemas with an `$id` are components there.
 */

const count = { type: 'integer', minimum: 0 } as const
const number = { type: 'number' } as const
const text = { type: 'string' } as const
const texts = { type: 'array', items: text } as const

function object<P extends Record<string, unknown>, O extends keyof P & string = never>(
  properties: P,
  optional: readonly O[] = []
) {
  const required = Object.keys(properties).filter(key => !(optional as readonly string[]).includes(key))
  return { type: 'object', properties, required, additionalProperties: false } as const
}

const counts = { type: 'array', items: count } as const
const share = { ...number, minimum: 0, maximum: 1 } as const

/** Figures over some inputs; those that a model does not have are absent. */
const figures = {
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
const optionalFigures = [
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

/** A reference to one of `components`. */
export function ref(id: (typeof components)[number]['$id']): { readonly $ref: string } {
  return { $ref: `${id}#` }
}

export const components = [
  {
    $id: 'Failure',
    description: 'An error: a message of one line, a code for programs, and often a remedy.',
    ...object(
      {
        error: text,
        code: text,
        remedy: text,
        learned: {
          ...count,
          description: 'Number of the first inputs of the request that were learned before the peer stopped.'
        }
      },
      ['remedy', 'learned']
    )
  },
  {
    $id: 'PredictorId',
    description: 'Identifies a predictor, including every bit of its content.',
    ...object({
      updates: count,
      origin: { ...text, description: 'Peer id of the peer that computed it, empty for the initial predictor.' },
      incarnation: { ...count, description: "Number of that peer's run." },
      nonce: { ...count, description: 'Random number of that run.' },
      digest: { ...text, pattern: '^[0-9a-f]{32}$' }
    })
  },
  {
    $id: 'Traffic',
    description: 'Frames over tree edges since the start of this run.',
    ...object({ messages: count, bytes: count })
  },
  {
    $id: 'SentTraffic',
    description: 'Frames sent over tree edges since the start of this run.',
    ...object({
      messages: count,
      bytes: count,
      kinds: {
        description: 'Bytes by what they carry.',
        ...object({
          sums: { ...count, description: 'Gradient sums for the next update.' },
          steps: { ...count, description: 'Steps to newer predictors.' },
          predictors: { ...count, description: 'Whole predictors.' },
          other: { ...count, description: 'Ids, coverages, acknowledgements and checksums.' },
          float32: { ...count, description: 'What the sums and steps would take as float32 numbers.' }
        })
      }
    })
  },
  {
    $id: 'Metrics',
    description: 'Progressive figures of this run: each input is scored before it is learned.',
    ...object({
      total: object(figures, optionalFigures),
      recent: {
        type: 'array',
        description: 'The last 1,000 and the last 10,000 inputs, or fewer at the start.',
        items: object({ window: { ...count, description: 'Size of the window.' }, ...figures }, optionalFigures)
      },
      minute: {
        description: 'The last 60 seconds, or fewer at the start. Without inputs, only their number is given.',
        ...object({ seconds: number, inputs: count, loss: number, accuracy: share }, ['loss', 'accuracy'])
      },
      byTime: {
        description: 'Windows by time. They end at the greatest time of a row, or now.',
        ...object(
          {
            clock: { enum: ['rows', 'arrival'], description: 'Whose times: those of rows, or of their arrival.' },
            windows: {
              type: 'array',
              items: object(
                { seconds: { ...number, description: 'Length of the window.' }, ...figures },
                optionalFigures
              )
            },
            until: { ...text, description: 'The greatest time of a row, ISO 8601 in UTC.' },
            late: { ...count, description: 'Inputs that were older than the longest window.' },
            undated: { ...count, description: 'Inputs without a valid time.' }
          },
          ['until', 'late', 'undated']
        )
      }
    })
  },
  {
    $id: 'Drift',
    description: 'Rises of the level 1 − e^(−loss) that were detected in this run.',
    ...object({
      test: { enum: ['adwin', 'page-hinkley'] },
      alarms: count,
      recent: {
        type: 'array',
        description: 'The last 20: inputs when it was noticed, mean level before and after.',
        items: object({ inputs: count, before: share, after: share })
      }
    })
  },
  {
    $id: 'Status',
    description:
      'The status of the peer. Loss and accuracy are progressive: each input is scored before it is learned.',
    ...object(
      {
        command: { const: 'peer' },
        id: { ...text, description: 'Peer id.' },
        incarnation: { ...count, description: 'Number of this run from one state directory, from 1.' },
        nonce: { ...count, description: 'Random number of this run.' },
        inputs: { ...count, description: 'Inputs learned, including earlier runs.' },
        updates: { ...count, description: 'Updates of the predictor.' },
        addedClasses: { ...texts, description: 'Classes that were added while the network learned.' },
        weight: { ...number, description: 'Sum of the weights of the inputs; absent if it is their number.' },
        averageLoss: { ...number, description: 'Nats per input; half the squared error for model linear.' },
        accuracy: { ...number, minimum: 0, maximum: 1 },
        metrics: { $ref: 'Metrics#' },
        drift: { $ref: 'Drift#' },
        networkDrifts: { ...count, description: 'Times in this run that the loss rose at most peers of the network.' },
        neighbours: { ...texts, description: 'Peer ids of the neighbours in the tree.' },
        predictor: { $ref: 'PredictorId#' },
        batch: { ...count, description: 'b: gradients that the next update needs.' },
        adopted: { ...count, description: 'Predictors adopted from other peers.' },
        discarded: { ...count, description: 'Local gradients that no batch will use.' },
        discardedShare: { ...share, description: 'Share of the gradients of the last minute that no batch used.' },
        problem: { ...text, description: 'What is wrong with the peer; absent if nothing is.' },
        distrusted: {
          ...texts,
          description:
            'Peers that have violated the protocol repeatedly, or are proven hostile, and so get no children.'
        },
        skipped: { ...count, description: 'Inputs that were malformed or did not fit the model.' },
        ended: { type: 'boolean', description: 'Whether the stream has ended.' },
        data: { ...text, description: 'Name of the data that it learns, without its folder.' },
        received: { $ref: 'Traffic#' },
        sent: { $ref: 'SentTraffic#' },
        residualShare: {
          ...share,
          description: 'Share of the squared norm of the last segment that rounding has left for the next one.'
        },
        clippedShare: {
          ...share,
          description: 'Share of the squared norm of own recent sums that the bound of influence takes.'
        },
        privacy: {
          ...object({
            epsilon: { ...number, description: 'Budget of each input.' },
            delta: { ...number, description: 'Probability with which more may be revealed.' },
            clip: { ...number, description: 'Largest norm of the gradient of an input.' },
            releases: { ...count, description: 'Releases of an input that the budget allows.' },
            released: { ...count, description: 'Releases so far of the input that is released most often.' },
            spent: { ...number, description: 'ε of these releases.' },
            exhausted: { type: 'boolean', description: 'Whether the budget is spent: no more inputs are learned.' }
          }),
          description: 'Differential privacy of the inputs; absent without it.'
        },
        addresses: { ...texts, description: 'Multiaddresses for other peers to connect to.' }
      },
      [
        'addedClasses',
        'weight',
        'accuracy',
        'metrics',
        'drift',
        'data',
        'problem',
        'distrusted',
        'residualShare',
        'clippedShare',
        'privacy'
      ]
    )
  },
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
    $id: 'PeerRow',
    description: 'A peer of the network, from its last status, which it has signed.',
    ...object(
      {
        id: { ...text, description: 'Peer id.' },
        name: { ...text, description: 'Display name.' },
        software: { ...text, description: 'Version of its software.' },
        incarnation: { ...count, description: 'Number of its run from one state directory, from 1.' },
        nonce: { ...count, description: 'Random number of its run.' },
        started: { ...count, description: 'Start of the run, by its own clock, in ms since the epoch.' },
        uptime: { ...number, description: 'Duration of the run in seconds.' },
        inputs: count,
        inputsPerSecond: number,
        loss: { ...number, description: 'Progressive, in nats per input.' },
        accuracy: { ...number, minimum: 0, maximum: 1 },
        recent: {
          description: 'Figures of its last inputs, at most 1,000.',
          ...object({ inputs: count, loss: number, accuracy: share, rmse: number }, ['accuracy', 'rmse'])
        },
        windows: {
          type: 'array',
          description: 'Figures over windows by time that hold inputs.',
          items: object({ seconds: number, inputs: count, loss: number, accuracy: share, rmse: number }, [
            'accuracy',
            'rmse'
          ])
        },
        sent: { ...count, description: 'Bytes of frames in this run.' },
        received: { ...count, description: 'Bytes of frames in this run.' },
        sendRate: { ...count, description: 'Bytes of frames sent per second; absent for none.' },
        float32Rate: {
          ...count,
          description: 'What they would be with float32 sums; absent if that is what they are.'
        },
        neighbours: { ...texts, description: 'Peer ids of the neighbours in the tree.' },
        predictor: object({ updates: count, origin: text, incarnation: count }),
        batch: { ...count, description: 'b; absent if it is fixed.' },
        adopted: count,
        discarded: count,
        problem: { ...text, description: 'What is wrong with it; absent if nothing is.' },
        skipped: { ...count, description: 'Inputs that were malformed or did not fit the model; absent for none.' },
        drift: {
          description: 'Alarms of drift in its run, and inputs at the last one; absent before the first.',
          ...object({ alarms: count, inputs: count })
        },
        privacy: {
          description: 'Its budget of differential privacy; only for the answering peer, and absent without one.',
          ...object({ epsilon: number, spent: { ...number, description: 'ε of the releases so far.' } })
        },
        ended: { type: 'boolean', description: 'Whether its stream has ended.' },
        firstSeen: { ...number, description: 'ms since the epoch, by the clock of the answering peer.' },
        lastSeen: { ...number, description: 'ms since the epoch, by the clock of the answering peer.' },
        alive: { type: 'boolean', description: 'Whether its statuses arrive regularly.' },
        left: { type: 'boolean', description: 'Whether it announced that it leaves.' },
        group: { ...count, description: 'The same number for peers that follow the same predictor.' },
        below: {
          ...count,
          description: 'Number of peers behind it in the tree, as seen from the answering peer, itself included.'
        },
        path: { ...texts, description: 'For a search: tree neighbours from the answering peer, exclusive, to it.' }
      },
      [
        'name',
        'software',
        'loss',
        'accuracy',
        'recent',
        'windows',
        'sendRate',
        'float32Rate',
        'batch',
        'problem',
        'skipped',
        'drift',
        'privacy',
        'below',
        'path'
      ]
    )
  },
  {
    $id: 'Network',
    description:
      'Totals of all peers, as the tree neighbours report them. Loss and accuracy are means over all inputs, the recent ones over the last inputs of each peer.',
    ...object(
      {
        peers: { ...count, description: 'Number of peers that respond.' },
        ended: { ...count, description: 'Of these, peers whose stream has ended.' },
        problems: { ...count, description: 'Peers with a problem.' },
        drifting: { ...count, description: 'Peers whose loss rose within the last two minutes.' },
        inputs: count,
        inputsPerSecond: number,
        updates: { ...count, description: 'Updates of the best predictor.' },
        loss: number,
        recentLoss: number,
        accuracy: share,
        recentAccuracy: share,
        sent: count,
        bytesPerSecond: { ...number, description: 'Bytes of frames sent.' },
        float32BytesPerSecond: { ...number, description: 'What they would be with float32 sums.' },
        received: count,
        adopted: count,
        discarded: count,
        skipped: count,
        losses: { ...counts, description: 'Peers by recent loss: bucket i is from 2^(i/2 − 10) nats.' },
        rates: { ...counts, description: 'Peers by inputs per second: bucket i is from 2^(i − 2).' },
        groups: {
          type: 'array',
          items: object({ group: count, peers: count, updates: count }),
          description: 'The largest groups of peers that follow the same predictor.'
        },
        versions: {
          type: 'array',
          items: object({ version: text, peers: count }),
          description: 'Peers by version of the software.'
        }
      },
      ['loss', 'recentLoss', 'accuracy', 'recentAccuracy']
    )
  },
  {
    $id: 'Peers',
    description:
      "The answering peer's view of the network: totals of all peers, and the nearest of them, or those that were searched, or those behind a path.",
    ...object(
      {
        at: { ...number, description: 'ms since the epoch, by the clock of the answering peer.' },
        self: { ...text, description: 'Peer id of the answering peer; absent for an observer.' },
        network: { $ref: 'Network#' },
        peers: { type: 'array', items: { $ref: 'PeerRow#' } }
      },
      ['self']
    )
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
              mean: { ...number, description: 'The value is centred by it.' },
              deviation: { ...number, description: 'The value is divided by it.' }
            },
            ['role', 'of', 'rows', 'missing', 'bigrams', 'date', 'mean', 'deviation']
          )
        },
        hashBits: { ...count, description: 'Hashed values share 2^hashBits features.' }
      },
      ['label', 'columns', 'hashBits']
    )
  },
  {
    $id: 'Health',
    description: 'The check succeeded.',
    ...object({ ok: { const: true } })
  }
] as const

/** Error answers of all routes. */
export const failures = {
  '4xx': { description: 'The request was rejected.', ...ref('Failure') },
  '5xx': { description: 'The peer cannot answer.', ...ref('Failure') }
}
