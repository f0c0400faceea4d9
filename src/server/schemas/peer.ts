/** The answering peer: its status and its health. */
import { count, figures, number, object, optionalFigures, share, text, texts } from './inputs.js'

export const peer = [
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
    ...object(
      {
        total: object(figures, optionalFigures),
        recent: {
          type: 'array',
          description: 'The last 1,000 and the last 10,000 inputs, or fewer at the start.',
          items: object({ window: { ...count, description: 'Size of the window.' }, ...figures }, optionalFigures)
        },
        baseline: {
          description: 'What predictions that learn nothing reach on the labels of this run.',
          ...object(
            {
              accuracy: { ...share, description: 'Share of the most frequent class.' },
              rmse: { ...number, description: 'RMSE of the mean.' },
              loss: { ...number, description: 'Loss of the best constant prediction.' },
              previous: {
                description: 'With the label of the row before.',
                ...object({ accuracy: share, rmse: number }, ['accuracy', 'rmse'])
              }
            },
            ['accuracy', 'rmse']
          )
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
      },
      ['baseline']
    )
  },
  {
    $id: 'Drift',
    description: 'Rises of the level 1 − e^(−loss) that were detected in this run.',
    ...object({
      test: { enum: ['adwin'] },
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
        names: {
          type: 'object',
          additionalProperties: text,
          description:
            'Names of this peer, its neighbours and the maker of the predictor, by id; absent if they have none.'
        },
        predictor: { $ref: 'PredictorId#' },
        batch: { ...count, description: 'b: gradients that the next update needs.' },
        adopted: { ...count, description: 'Predictors adopted from other peers.' },
        discarded: {
          ...count,
          description: 'Gradients of this run that no batch will use, and whose inputs are not learned again.'
        },
        gradients: {
          ...object({
            used: { ...count, description: 'On the lineage of the predictor.' },
            available: { ...count, description: 'Available for the next update.' },
            waiting: { ...count, description: 'Unused, but their inputs are learned again.' },
            repeated: { ...count, description: 'Replaced, because their inputs were learned again.' },
            late: { ...count, description: 'Those that ever came too late for a batch. The number never falls.' }
          }),
          description: 'Own gradients of this run, by what has become of them.'
        },
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
        addresses: { ...texts, description: 'Multiaddresses for other peers to connect to.' },
        joinPage: { const: true, description: 'It serves the join page; absent if it does not.' }
      },
      [
        'addedClasses',
        'names',
        'weight',
        'accuracy',
        'metrics',
        'drift',
        'data',
        'problem',
        'distrusted',
        'residualShare',
        'clippedShare',
        'privacy',
        'joinPage'
      ]
    )
  },
  {
    $id: 'Health',
    description: 'The check succeeded.',
    ...object({ ok: { const: true } })
  }
] as const
