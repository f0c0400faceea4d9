/** ADMB as a pure state machine, used by peers, the simulator and tests. Terms: docs/glossary.md. */

export { isAnnouncement, PUSH_PERIODS, WAIT_PERIODS } from './announcements.js'
export { type Allocate, FrameError } from './bytes.js'
export type { Contributor, ContributorTable, CoveredContributor } from './contributors.js'
export type { Coverage } from './coverage.js'
export type { PredictorLookup } from './current-predictor.js'
export { isProof } from './equivocation.js'
export type { KeptSums } from './exchanged-sums.js'
export { isFragment } from './fragments.js'
export { hasSum, maximumFrameBytes } from './frame.js'
export { decodeHead, encodeHead, type Head } from './head.js'
export type { JournalRecord } from './journal.js'
export type { JumpRule, QuarantinedPredictor } from './jumps.js'
export { type GradientAccount, maxRetainedSums } from './ledger.js'
export { WAIT_BATCHES } from './limits.js'
export { AdmbNode } from './node.js'
export type { NodeStorage, StoredBlocks } from './node-storage.js'
export type { AdmbOptions, Effect } from './options.js'
export { MAX_PACE } from './pace.js'
export { type Batch, type Header, nextPredictor, type Predictor, type Recipe, startingPredictor } from './predictor.js'
export {
  compareIds,
  formatId,
  type Precedence,
  type PredictorId,
  sameId
} from './predictor-id.js'
export type { Quota } from './quotas.js'
export {
  decodeSaved,
  encodeSaved,
  encodeSavedBlocks,
  PredictorAssembler,
  type Saved,
  type SavedBlocks
} from './saved.js'
export { replaySteps, type SavedSteps } from './saved-steps.js'
export type { Attestation, Claims, Signer } from './signatures.js'
export type { TrafficBytes } from './traffic.js'
export { type Shapes, shapesOf } from './vectors.js'
export { isVoucher } from './vouchers.js'
