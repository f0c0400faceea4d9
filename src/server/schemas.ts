/**
 * What requests and answers look like, as JSON Schema: requests are checked against it, answers by the tests, and
 * `GET /openapi.json` shows it. Those with an `$id` are components there.
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

/** A reference to one of `components`. */
export function ref(id: (typeof components)[number]['$id']): { readonly $ref: string } {
  return { $ref: `${id}#` }
}

export const components = [
  {
    $id: 'Failure',
    description: 'What went wrong: a line for people, a code for programs, and often what to do about it.',
    ...object({ error: text, code: text, remedy: text }, ['remedy'])
  },
  {
    $id: 'PredictorId',
    description: 'Stands for one content, down to the last bit.',
    ...object({
      updates: count,
      origin: { ...text, description: 'Peer id of the maker, empty for the predictor that all start from.' },
      incarnation: { ...count, description: "Number of the maker's run." },
      digest: { ...text, pattern: '^[0-9a-f]{32}$' }
    })
  },
  {
    $id: 'Traffic',
    description: 'Frames over tree edges since the start of this run.',
    ...object({ messages: count, bytes: count })
  },
  {
    $id: 'Status',
    description:
      'What the peer says of itself. Loss and accuracy are progressive: each input is scored before it is learned.',
    ...object(
      {
        command: { const: 'peer' },
        id: { ...text, description: 'Peer id.' },
        incarnation: { ...count, description: 'Number of this run from one state directory, from 1.' },
        inputs: { ...count, description: 'Inputs learned, earlier runs included.' },
        updates: { ...count, description: 'Updates behind the predictor.' },
        averageLoss: { ...number, description: 'Nats an input; half the squared error for model linear.' },
        accuracy: { ...number, minimum: 0, maximum: 1 },
        neighbours: { ...texts, description: 'Peer ids of the neighbours in the tree.' },
        predictor: { $ref: 'PredictorId#' },
        adopted: { ...count, description: 'Predictors taken over from others.' },
        discarded: { ...count, description: 'Own gradients that no batch will use.' },
        skipped: { ...count, description: 'Inputs that were malformed or did not fit the model.' },
        ended: { type: 'boolean', description: 'Whether the stream has come to its end.' },
        received: { $ref: 'Traffic#' },
        sent: { $ref: 'Traffic#' },
        addresses: { ...texts, description: 'Multiaddresses that other peers can join.' }
      },
      ['accuracy']
    )
  },
  {
    $id: 'Input',
    type: 'object',
    description:
      'An input: `{"label": …, "features": {…}}`, `{"label": …, "features": […]}`, or flat, every key but the label being a feature. Keys are feature numbers, or names where features are columns or hashed.',
    examples: [{ label: 1, features: { 3: 0.5 } }]
  },
  {
    $id: 'Predictions',
    description: 'A prediction for each input, in order, by the predictor that served when the request came.',
    ...object({
      predictions: {
        type: 'array',
        items: object({
          label: { type: ['number', 'string'], description: 'Class number or name; the number itself for regression.' },
          scores: {
            type: 'array',
            items: number,
            description: 'A probability for each class, or the predicted number.'
          }
        })
      },
      predictor: { $ref: 'PredictorId#' }
    })
  },
  {
    $id: 'PeerRow',
    description: 'A peer of the network by its last status, which that peer has signed.',
    ...object(
      {
        id: { ...text, description: 'Peer id.' },
        name: { ...text, description: 'What its owner calls it.' },
        incarnation: { ...count, description: 'Number of its run from one state directory, from 1.' },
        started: { ...count, description: 'When the run began, by its own clock, in ms since the epoch.' },
        uptime: { ...number, description: 'Seconds of the run.' },
        inputs: count,
        inputsPerSecond: number,
        loss: { ...number, description: 'Progressive, in nats an input.' },
        accuracy: { ...number, minimum: 0, maximum: 1 },
        sent: { ...count, description: 'Bytes of frames in this run.' },
        received: { ...count, description: 'Bytes of frames in this run.' },
        neighbours: { ...texts, description: 'Peer ids of the neighbours in the tree.' },
        predictor: object({ updates: count, origin: text, incarnation: count }),
        adopted: count,
        discarded: count,
        ended: { type: 'boolean', description: 'Whether its stream has come to its end.' },
        firstSeen: { ...number, description: 'ms since the epoch, by the clock of the peer that answers.' },
        lastSeen: { ...number, description: 'ms since the epoch, by the clock of the peer that answers.' },
        fresh: { type: 'boolean', description: 'Whether its statuses come regularly.' },
        left: { type: 'boolean', description: 'It said goodbye.' },
        group: { ...count, description: 'The same for peers that follow one predictor.' }
      },
      ['name', 'loss', 'accuracy']
    )
  },
  {
    $id: 'Peers',
    description: 'The network as the answering peer knows it.',
    ...object(
      {
        at: { ...number, description: 'ms since the epoch, by the clock of the peer that answers.' },
        self: { ...text, description: 'Peer id of the peer that answers; an onlooker has none.' },
        peers: { type: 'array', items: { $ref: 'PeerRow#' } }
      },
      ['self']
    )
  },
  {
    $id: 'Health',
    description: 'The process answers.',
    ...object({ ok: { const: true } })
  }
] as const

/** Answers that any route may give. */
export const failures = {
  '4xx': { description: 'The request is refused.', ...ref('Failure') },
  '5xx': { description: 'The peer cannot answer.', ...ref('Failure') }
}
