/** The parts of an ADMB node, connected with each other. */

import { type Contributor, ContributorTable } from '../state/contributors.js'
import { gridOf } from '../state/lazy-grid.js'
import type { Header } from '../state/predictor.js'
import { maximumChainBytes } from '../state/step.js'
import { BufferPool, type Shapes, shapesOf } from '../state/vectors.js'
import { Admission } from '../trust/admission.js'
import { Authenticity } from '../trust/authenticity.js'
import { OwnInfluence } from '../trust/influence.js'
import { Quotas } from '../trust/quotas.js'
import { HISTORY_UPDATES, MAX_BATCH } from '../wire/limits.js'
import { Traffic } from '../wire/traffic.js'
import { Announcements } from './announcements.js'
import { CurrentPredictor, type ReceivedPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import { FrameReceiver } from './frame-receiver.js'
import { FrameSender } from './frame-sender.js'
import { Ledger } from './ledger.js'
import { NeighbourSums } from './neighbour-sums.js'
import { NodeStorage } from './node-storage.js'
import type { AdmbOptions, Effect } from './options.js'
import { Outbox } from './outbox.js'
import { OutgoingSums } from './outgoing-sums.js'
import { Pace } from './pace.js'
import { Updater } from './updater.js'

export type NodeParts = ReturnType<typeof createParts>

/**
 * Creates the parts of a node.
 * @param adopt takes the better predictor of a neighbour as the current one
 * @throws RangeError if an option is out of range
 */
export function createParts(
  options: AdmbOptions,
  adopt: (headers: readonly Header[], received: ReceivedPredictor, from: string) => void
) {
  const [least, most] =
    typeof options.batch === 'number' ? [options.batch, options.batch] : [options.batch.min, options.batch.max]
  if (!Number.isSafeInteger(least) || least < 1 || most > MAX_BATCH) {
    throw new RangeError(`batch must be an integer from 1 to ${MAX_BATCH}, not ${least}`)
  }
  if (options.precedence === 'sender' && options.carry) {
    throw new RangeError("precedence 'sender' requires carry 0, because nodes can return to an earlier predictor")
  }
  const { self, incarnation, nonce = 0, layout, initial, rule, signer, quota, jumps } = options
  if (jumps && signer === undefined) throw new RangeError('a rule for jumps requires a signer')
  const { carry = 0, lineage = 1024, precedence = 'origin', pushBytes = 65536, journal = false } = options
  const isLattice = rule.grid !== undefined
  const shapes: Shapes = { ...shapesOf(layout, options), isLattice }
  const wholeBytes = maximumChainBytes(shapes)
  const current = new CurrentPredictor(initial, shapes, options, options.batch, lineage, options.known)
  const outbox = new Outbox(current, { self, precedence, pushBytes, wholeBytes })
  const contributor: Contributor = { origin: self, incarnation, nonce }
  const table = new ContributorTable()
  const selfIndex = table.indexOf(contributor)
  const edges = new Map<number, Edge>()
  const buffers = new BufferPool(layout)
  const authenticity = new Authenticity(signer, self, table, options.isContributor)
  authenticity.certify(selfIndex)
  const quotas = quota && new Quotas(quota, number => table.contributor(number).origin)
  const effects: Effect[] = []
  const report = (effect: Effect) => effects.push(effect)
  const admission = new Admission({ ...options, current, edges, authenticity, quotas, report })
  /** Undefined without a signer. */
  const influence = options.influence && new OwnInfluence(options.influence, initial.parameters)
  const ledger = new Ledger({
    buffers,
    carry,
    history: { updates: HISTORY_UPDATES, periods: options.history ?? Number.POSITIVE_INFINITY },
    repeats: options.repeats,
    contributor: selfIndex,
    id: initial.id,
    grid: gridOf(initial, rule),
    marksElements: options.marksElements,
    run: journal ? contributor : undefined,
    influence,
    noise: options.noise
  })
  const sums = new NeighbourSums(self, table, edges, buffers)
  /** Undefined if a changed sum is due in each period. */
  const pace = options.adaptsPeriod ? new Pace() : undefined
  const outgoingSums = new OutgoingSums(ledger, sums, buffers, pace)
  const traffic = new Traffic(isLattice)
  /** Undefined for predictors that need no announcement, because they are as short as one, and for precedence by sender. */
  const announcements =
    wholeBytes > pushBytes && precedence === 'origin' ? new Announcements(edges, current, outbox) : undefined
  const { averaging, fragmentBytes, allocate } = options
  const common = { shapes, table, buffers, current, outbox, outgoingSums, announcements, ledger, sums, authenticity }
  const sender = new FrameSender({ ...common, traffic, fragmentBytes, allocate })
  const updater = new Updater({ ...common, rule, averaging, contributor })
  const receiver = new FrameReceiver({
    ...common,
    report,
    adopt,
    rule,
    influence: options.influence,
    quotas,
    maxBatch: most,
    admission
  })
  const storage = new NodeStorage(current, shapes, table, options, authenticity)
  return {
    ...common,
    options,
    effects,
    /** Number of ticks. */
    period: 0,
    selfIndex,
    edges,
    quotas,
    admission,
    influence,
    pace,
    traffic,
    sender,
    updater,
    receiver,
    storage
  }
}
