/** Durable state of a peer. */
export { DamagedStateError, MissingStateError, ModelMismatchError, StateInUseError, StateWriteError } from './errors.js'
export { type Beginning, type Checkpoint, Store } from './store.js'
