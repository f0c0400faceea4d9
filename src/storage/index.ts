/** Durable state of a peer. */
export { DamagedStateError, MissingStateError, ModelMismatchError, StateInUseError, StateWriteError } from './errors.js'
export { type Checkpoint, type StartedRun, Store } from './store.js'
