/** Durable state of a peer. */
export { DamagedStateError, ModelMismatchError, StateInUseError, StateWriteError } from './errors.js'
export { type Beginning, type Checkpoint, Store } from './store.js'
