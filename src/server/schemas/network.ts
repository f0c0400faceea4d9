/** The network as the answering peer sees it. */
import { count, counts, number, object, share, text, texts } from './inputs.js'

/** Figures that depend on what is predicted. */
const scores = { accuracy: share, rmse: number, r2: number }
const SCORES = ['accuracy', 'rmse', 'r2'] as const

export const network = [
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
          ...object({ inputs: count, loss: number, ...scores }, SCORES)
        },
        windows: {
          type: 'array',
          description: 'Figures over windows by time that hold inputs.',
          items: object({ seconds: number, inputs: count, loss: number, ...scores }, SCORES)
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
        losses: {
          ...counts,
          description: 'Peers by recent loss, of a regression by 1 − R²: bucket i is from 2^(i/2 − 10).'
        },
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
  }
] as const
