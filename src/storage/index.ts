/** Durable state of a peer. Terms: docs/glossary.md. */
export { DamagedStateError, MissingStateError, ModelMismatchError, StateInUseError, StateWriteError } from './errors.js'
export { type Checkpoint, type StartedRun, Store } from './store.js'
