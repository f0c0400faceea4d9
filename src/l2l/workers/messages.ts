/**
 * Messages between the pool and its workers. They are sent through ports that are read synchronously; shared integers
 * wake the reader.
 */
import type { MessagePort } from 'node:worker_threads'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import type { RowCopy } from '../dense-rows.js'
import type { Execution, ExecutorOptions } from '../executor/types.js'

/** Data of a starting worker. */
export interface WorkerInit {
  readonly network: NetworkSpec
  readonly backend: Execution['backend']
  readonly executorOptions: ExecutorOptions
  readonly weights: SharedWeights
  readonly cells: SharedArrayBuffer
  /** Shared ring of RING_SIZE gradient buffers, each large enough for any layer: see `Contributor`. */
  readonly gradients: readonly Float32Array[]
  /** Index of this worker, from 0. */
  readonly worker: number
  readonly port: MessagePort
}

/** A model's weights in shared memory. */
export interface SharedWeights {
  /** Backed by SharedArrayBuffers. */
  readonly blocks: readonly Float32Array[]
  /** If parameter server threads update the weights: for waiting until an update is done. */
  readonly signals?: { readonly shared: SharedArrayBuffer; readonly threads: number }
}

/** A worker's share of a minibatch. */
export interface WorkerTask {
  /** Number of the call, by which it is aborted. */
  readonly attempt: number
  /** Seed of dropout, skips and shuffles. */
  readonly step: number
  readonly updates: number | undefined
  readonly firstMicrobatch: number
  readonly rows: RowCopy
}

export type WorkerMessage =
  /** The task is done; `ms` excludes waiting. */
  | { readonly kind: 'done'; readonly loss: number; readonly hits: number; readonly ms: number }
  /** The task failed. */
  | { readonly kind: 'failed'; readonly code: string | undefined; readonly reason: string }

/**
 * Shared integers: the number of gradients reduced in this step, the aborted step, and for each worker the number of
 * tasks sent to it, a counter of its messages and gradients, and the number of its gradients in this step.
 */
export const REDUCED = 0
export const ABORTED = 1
const FIXED = 2
export const cellCount = (workers: number) => FIXED + 3 * workers
export const tasksCell = (worker: number) => FIXED + 3 * worker
export const messagesCell = (worker: number) => FIXED + 3 * worker + 1
export const gradientsCell = (worker: number) => FIXED + 3 * worker + 2
/** Size of the gradient rings: how many gradients a worker may be ahead of the reduction. */
export const RING_SIZE = 4
