/** Options of an ADMB node, and the effects that it reports to its driver. */
import type { BatchRule, Blocks, InfluenceRule, Layout, SumBudget } from '../../learning/types.js'
import type { ContributorTable } from '../state/coverage.js'
import type { Batch, Header, Predictor, Recipe } from '../state/predictor.js'
import type { Precedence, PredictorId } from '../state/predictor-id.js'
import type { JumpRule, QuarantinedPredictor } from '../trust/jumps.js'
import type { Quota } from '../trust/quotas.js'
import type { Signer } from '../trust/signatures.js'
import type { Allocate } from '../wire/bytes.js'
import type { PredictorLookup } from './current-predictor.js'

/** MaWo-DMB and DMB, where only the node at the root of the tree makes updates. */
export type MasterAlgorithm = 'mawo' | 'dmb'

/** Options of an `AdmbNode`. */
export interface AdmbOptions extends Recipe {
  /**
   * Signs the headers of this node and verifies those of others, which must be signed then.
   * @default headers have no signatures
   */
  readonly signer?: Signer
  /**
   * Whether gradients of a peer may be used, beside own ones. Sums with others are neither used nor
   * passed on, and a predictor that follows by steps with others is subject to the gate, like a
   * whole one. Neighbours are not refused for them, since their lists may differ.
   * @default gradients of all peers may be used
   */
  readonly isContributor?: (peer: string) => boolean
  /** Index (peer id) of this node. Among predictors with as many updates, the lower origin wins. */
  readonly self: string
  /** Number of this run: 1, 2, 3, … It must be stored durably before the first frame is sent. */
  readonly incarnation: number
  /**
   * Random number of this run. It distinguishes runs with the same number, which occur with copied
   * or restored directories and without a directory.
   * @default 0
   */
  readonly nonce?: number
  readonly layout: Layout
  /** Initial predictor, from `startingPredictor` or from an earlier run. */
  readonly initial: Predictor
  /** b: gradients per batch, ≥ 1. If it adapts, the last block of the layout is its block. */
  readonly batch: number | BatchRule
  /**
   * Bound of the gradient sum of each contributor, which the recipe and the layout must contain.
   * @default none
   */
  readonly influence?: InfluenceRule
  /**
   * Budget of elements of own sums, which the recipe and the layout must contain. The rest of them
   * waits for later updates (`AdmbNode.unsent`).
   * @default sums contain all elements that do not round to 0
   */
  readonly budget?: SumBudget
  /**
   * Adds noise to the sum of a segment of own gradients, once, when it is closed and before it is
   * rounded: nothing that leaves the node contains the gradients without it.
   * @default no noise
   */
  readonly noise?: (sum: Blocks) => void
  /**
   * S: number of periods for which unused gradients are carried over; 0 is the published algorithm.
   * @default 0
   */
  readonly carry?: number
  /**
   * Whether sums are sent less often than each period where that delays updates little: when their
   * counts have grown enough, and at the latest after 64 periods. Other nodes need not do the same.
   * @default false
   */
  readonly adaptsPeriod?: boolean
  /**
   * H: maximum number of headers of ancestors that are kept. A neighbour receives those that it
   * lacks.
   * @default 1024
   */
  readonly lineage?: number
  /**
   * Number of periods after which the node forgets which own gradients a predictor has used.
   * Gradients of a forgotten time are never learned again.
   * @default no limit but that of updates
   */
  readonly history?: number
  /**
   * Whether inputs that no batch of the lineage has used, and whose gradients can no longer be
   * carried over, are learned again. The driver reads them (`relearnable`). Requires a journal.
   * @default false: only inputs of earlier runs
   */
  readonly repeats?: boolean
  /**
   * Whether gradients at one predictor can be used at another. Other gradients are dropped, and
   * count as discarded.
   * @default always
   */
  readonly carries?: (from: Predictor, to: Predictor) => boolean
  /**
   * Whether a whole better predictor of another node may replace the current one. A refused one is
   * reported, and requested and judged again only after 64 own inputs, then 128, 256 and so on.
   * Predictors that follow by steps from one that this node held are not subject to it.
   * @default always
   */
  readonly gate?: (candidate: Predictor, current: Predictor) => boolean
  /**
   * Maximum number of gradients that a peer contributes, by this node's ticks. A neighbour's sum
   * that states more is neither used nor passed on, and reported as `excessive`. A predictor that
   * follows by steps with more is subject to the gate and to `jumps`, like a whole one.
   * @default any number
   */
  readonly quota?: Quota
  /**
   * Number of peers that must answer for a whole predictor that does not follow from one that this
   * node holds or held. It waits until then. Requires a signer.
   * @default no thresholds
   */
  readonly jumps?: JumpRule
  /**
   * Whether inputs are numbered and own segments recorded, so that a later run uses each input
   * exactly once (`takeJournal`).
   * @default false
   */
  readonly journal?: boolean
  /**
   * Whether only the node at the root of the tree makes updates, and how. The host says where that
   * is (`setMaster`).
   * @default each node that has b gradients makes an update, as in ADMB
   */
  readonly algorithm?: MasterAlgorithm
  /**
   * 'sender' is the published rule, for experiments; it requires carry 0.
   * @default 'origin'
   */
  readonly precedence?: Precedence
  /**
   * Whole predictors of at most this many bytes are pushed to neighbours without a request.
   * @default 65536
   */
  readonly pushBytes?: number
  /**
   * Size of a whole predictor in bytes from which the host gets predictors that neighbours offer
   * outside the edges. An `offered` effect then takes the place of a request, until `downloadEnded`.
   * @default predictors of all sizes are requested
   */
  readonly downloadBytes?: number
  /**
   * Approximate size of fragments, in bytes, into which the vectors of larger frames are split.
   * @default frames are not split
   */
  readonly fragmentBytes?: number
  /**
   * Maximum bytes of the integer sums at one predictor that are kept in memory for each neighbour
   * and direction, as bases of differences. At least two sums are kept, at most 64.
   * @default 16777216
   */
  readonly keptBytes?: number
  /**
   * Returns predictors that are already in memory, to avoid computing them again.
   * @default none
   */
  readonly known?: PredictorLookup
  /**
   * Whether long arrays of predictors that the node has dropped are reused. Whoever reads a
   * predictor later than in the same event calls `keepArrays`.
   * @default false
   */
  readonly reusesArrays?: boolean
  /**
   * Contributors that the nodes of a process share, if frames are not signed. They are never
   * removed.
   * @default a table of its own
   */
  readonly contributors?: ContributorTable
  /**
   * Whether frames of an edge session arrive in the order in which they were sent, and none is
   * lost. Integer sums then refer to sums that are still on their way. If a frame is lost
   * nevertheless, the neighbour receives the sums later.
   * @default false
   */
  readonly isOrdered?: boolean
  /**
   * Allocates the buffers of finished frames.
   * @default a new buffer for each frame, which can be transferred
   */
  readonly allocate?: Allocate
}

/** Effects, for the driver to execute. */
export type Effect =
  | { readonly kind: 'updated'; readonly predictor: Predictor; readonly header: Header; readonly batch: Batch }
  | { readonly kind: 'adopted'; readonly predictor: Predictor; readonly from: string }
  /** A short message for `receive` of a neighbour, to be sent ahead of frames. It may be lost. */
  | { readonly kind: 'announced'; readonly edge: number; readonly bytes: Uint8Array }
  | { readonly kind: 'refused'; readonly edge: number; readonly reason: string }
  /** A neighbour holds a better predictor, and no steps to it: the host downloads it, then calls `downloadEnded`. */
  | { readonly kind: 'offered'; readonly predictor: PredictorId; readonly from: string }
  | { readonly kind: 'rejected'; readonly predictor: Predictor; readonly from: string }
  /** A predictor waits, because too few peers answer for it. Later it may be adopted. */
  | ({ readonly kind: 'quarantined' } & QuarantinedPredictor)
  /** A sum is not used, because `isContributor` is false for one of its peers. */
  | { readonly kind: 'unlisted'; readonly contributor: string; readonly from: string }
  /** A sum is not used, because it exceeds the quota of its peers. Reported once a session. */
  | { readonly kind: 'excessive'; readonly from: string }
  /** A maker has signed different headers with one name: nothing of it is accepted any more. */
  | { readonly kind: 'excluded'; readonly maker: string }
