/** Durable state of a peer. Terms: docs/reference/glossary.md. */

export { hasLayers } from '#marker'
export type { Checkpoint, JournalAppend, NewSteps, StartedRun, StoredJournal } from './database.js'
export {
  DamagedStateError,
  LayeredStateError,
  layersFolder,
  MissingStateError,
  ModelMismatchError,
  StateInUseError,
  StateWriteError
} from './errors.js'
export { drawNonce, Store } from './store.js'
