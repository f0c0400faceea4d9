/** Durable state of a peer. Terms: docs/glossary.md. */
export { DamagedStateError, MissingStateError, ModelMismatchError, StateInUseError, StateWriteError } from './errors.js'
export {
  type Checkpoint,
  drawNonce,
  type JournalAppend,
  type NewCheckpoint,
  type StartedRun,
  Store,
  type StoredJournal
} from './store.js'
