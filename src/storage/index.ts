/** Durable state of a peer. Terms: docs/glossary.md. */

export { hasLayers } from '#marker'
export {
  DamagedStateError,
  LayeredStateError,
  MissingStateError,
  ModelMismatchError,
  StateInUseError,
  StateWriteError
} from './errors.js'
export type { JournalAppend, StoredHistory, StoredJournal } from './journal.js'
export { layersFolder } from './marker-text.js'
export type { Checkpoint, NewCheckpoint, NewSteps, StartedRun, StoredSteps } from './records.js'
export { drawNonce, Store } from './store.js'
