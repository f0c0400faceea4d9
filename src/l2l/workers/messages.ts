/** What a step's parties say to each other: through ports that are read synchronously, with a shared integer to wait on. */
import type { MessagePort } from 'node:worker_threads'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import type { Execution } from '../execution-options.js'
import type { ExecutorOptions } from '../executor/executor.js'

/** What a worker starts with. */
export interface WorkerInit {
  readonly network: NetworkSpec
  readonly backend: Execution['backend']
  readonly executorOptions: ExecutorOptions
  readonly weights: SharedWeights
  readonly cells: SharedArrayBuffer
  /** Shared memory for its gradients, MOST_AHEAD arrays for any layer each: see `Contributor`. */
  readonly gradients: readonly Float32Array[]
  /** Number of this worker, from 0. */
  readonly worker: number
  readonly port: MessagePort
}

/** A model's weights in memory that all workers see. */
export interface SharedWeights {
  /** In shared memory. */
  readonly blocks: readonly Float32Array[]
  /** Where threads of the param-server step them: how to wait until they have. */
  readonly signals?: { readonly shared: SharedArrayBuffer; readonly threads: number }
}

/** A worker's part of a minibatch. */
export interface WorkerTask {
  readonly step: number
  readonly updates: number | undefined
  readonly firstMicrobatch: number
  readonly size: number
  readonly values: Float32Array<ArrayBuffer>
  readonly labels: Float32Array<ArrayBuffer>
}

export type WorkerMessage =
  /** The part is done, in so many milliseconds without waiting. */
  | { readonly kind: 'done'; readonly loss: number; readonly hits: number; readonly ms: number }
  /** The part could not be done. */
  | { readonly kind: 'failed'; readonly code: string | undefined; readonly reason: string }

/**
 * Shared integers: gradients that were reduced in this step, the step that was given up, and for each worker the tasks that it was
 * sent, a count that grows with everything that it has to say, and its gradients of this step.
 */
export const REDUCED = 0
export const ABORTED = 1
const FIXED = 2
export const cellCount = (workers: number) => FIXED + 3 * workers
export const tasksCell = (worker: number) => FIXED + 3 * worker
export const messagesCell = (worker: number) => FIXED + 3 * worker + 1
export const gradientsCell = (worker: number) => FIXED + 3 * worker + 2
/** Gradients that a worker may be ahead of the reduction. */
export const RING_SIZE = 4
