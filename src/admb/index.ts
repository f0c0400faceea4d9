/** ADMB as a pure state machine for peers, the simulator and tests. Terms: docs/reference/glossary.md. */

export { isAnnouncement, PUSH_PERIODS, WAIT_PERIODS } from './core/announcements.js'
export type { PredictorLookup } from './core/current-predictor.js'
export type { JournalRecord } from './core/journal.js'
export type { GradientAccount } from './core/ledger.js'
export { isEndNotice, type MasterEdge } from './core/mastership.js'
export { AdmbNode } from './core/node.js'
export type { InspectedSum, NodeInspection } from './core/node-inspection.js'
export type { NodeStorage, StoredBlocks } from './core/node-storage.js'
export type { AdmbOptions, Effect, MasterAlgorithm } from './core/options.js'
export { MAX_PACE } from './core/outgoing-sums.js'
export { maxRetainedSums } from './core/retained-sums.js'
export {
  type DrivenNode,
  Driver,
  type DriverHost,
  type DriverJournal,
  type DriverOptions,
  type HostEffect
} from './driver/driver.js'
export { JournalQueue } from './driver/journal-queue.js'
export { type AnnouncedPredictor, PredictorGossip } from './driver/predictor-gossip.js'
export { QUIET_PERIODS } from './driver/remainder.js'
export type { Contributor, ContributorTable, Coverage, CoveredContributor, Runs } from './state/coverage.js'
export {
  type Batch,
  type Header,
  nextPredictor,
  type Predictor,
  type Recipe,
  startingPredictor
} from './state/predictor.js'
export {
  compareIds,
  formatId,
  type Precedence,
  type PredictorId,
  sameId
} from './state/predictor-id.js'
export { type Shapes, shapesOf } from './state/vectors.js'
export { isProof } from './trust/equivocation.js'
export type { JumpRule, QuarantinedPredictor } from './trust/jumps.js'
export { type Quota, quotaOf } from './trust/quotas.js'
export type { Claims, Signer } from './trust/signatures.js'
export { isVoucher } from './trust/vouchers.js'
export { type Allocate, FrameError } from './wire/bytes.js'
export type { TrafficBytes } from './wire/encode.js'
export type { KeptSums } from './wire/exchanged-sums.js'
export { isFragment } from './wire/fragments.js'
export type { Attestation } from './wire/frame.js'
export { hasSum, maximumFrameBytes, WAIT_BATCHES } from './wire/frame.js'
export { decodeHead, encodeHead, type Head } from './wire/messages.js'
export {
  decodeSaved,
  encodeSaved,
  encodeSavedBlocks,
  PredictorAssembler,
  replaySteps,
  type Saved,
  type SavedBlocks,
  type SavedSteps
} from './wire/saved.js'
