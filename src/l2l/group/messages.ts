/**
 * The messages between a peer and a device worker on this or another machine. Each is a JSON object, followed by arrays of float32
 * numbers (little-endian). A worker sends no requests, because the peer sends all that a task needs.
 */
import type { AveragingSpec, Layout, RuleSpec } from '../../learning/index.js'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import type { RowCopy } from '../dense-rows.js'
import type { ExecutorOptions } from '../executor/types.js'
import type { ArrayLengths } from '../store/layer-file.js'
import type { CodedBlocks } from '../workers/gradient-codes.js'
import type { WorkerMessage, WorkerTask } from '../workers/worker-handle.js'
import type { MailPart } from './mail.js'

/** A connection that keeps messages in order. */
export interface DeviceLine {
  /** @param bytes their concatenation is sent; they must not change until then */
  send(message: object, bytes?: readonly Uint8Array[]): void
  /** Sets the handler; messages that have arrived before wait for it. */
  receive(handler: {
    message(message: Record<string, unknown>, bytes: Uint8Array): void
    closed(reason: string): void
  }): void
  close(reason: string): void
}

/** Messages of the peer. */
export type ToWorker =
  /** The network, the lengths of its blocks of weights, and how gradients are sent. Frozen weights follow. */
  | {
      readonly kind: 'network'
      readonly network: NetworkSpec
      readonly executorOptions: Omit<ExecutorOptions, 'frozen'>
      readonly lengths: readonly number[]
      readonly frozen: readonly number[]
      readonly coded?: CodedBlocks
    }
  /** The frozen weights of a layer follow. */
  | { readonly kind: 'frozen'; readonly layer: number }
  /** The rows follow: values, labels, and weights if there are any. Messages with the weights of these blocks come next. */
  | (Omit<WorkerTask, 'rows'> & {
      readonly kind: 'task'
      /** Whether the stages of a pipeline have changed. */
      readonly isNewPlace: boolean
      readonly size: number
      readonly width: number
      readonly isWeighted: boolean
      readonly blocks: readonly number[]
    })
  /** The weights of a block follow. */
  | { readonly kind: 'weights'; readonly block: number }
  /** The blocks of a partitioned network that the worker holds, all zero, and how they are updated. */
  | ({ readonly kind: 'hold'; readonly returnsWeights: boolean; readonly lengths: ArrayLengths } & Held)
  /** The gradient of a block that the worker holds follows: it updates the block, and replies `stepped`. */
  | { readonly kind: 'step'; readonly block: number; readonly count: number; readonly updates: number }
  /** The worker replies with an array of a block. */
  | { readonly kind: 'read'; readonly block: number; readonly array: number }
  /** An array of a block follows. The worker replies when it has it. */
  | { readonly kind: 'write'; readonly block: number; readonly array: number }
  /** Number of gradients of the task that the peer has stored. */
  | { readonly kind: 'stored'; readonly count: number }
  | MailPart
  /** Another stage has failed. */
  | { readonly kind: 'abort'; readonly attempt: number }

/** Blocks of a network that a worker holds, and their rule. */
export interface Held {
  readonly blocks: readonly number[]
  readonly layout: Layout
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
}

/** Messages of the worker. */
export type ToPeer =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'ready'; readonly device: string }
  /** The gradient of a block follows, or its code. Blocks come from the last to the first. */
  | { readonly kind: 'gradient'; readonly block: number }
  | { readonly kind: 'result'; readonly result: WorkerMessage }
  | MailPart
  /** The gradients of a layer of a stage follow, and their numbers. */
  | { readonly kind: 'gradients'; readonly lengths: readonly number[] }
  /** A block is updated, unless its gradient was not finite and dropped. Its weights follow, if they are to be returned. */
  | { readonly kind: 'stepped'; readonly block: number; readonly isDropped: boolean }
  /** Reply to `read`, whose array follows, or to `write`, in their order. */
  | { readonly kind: 'copied' }

/** The memory of an array as bytes. */
export function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}

/** A copy of memory that threads share, as streams encrypt only memory of their own. */
export function copyOf(array: Float32Array): Uint8Array {
  return bytesOf(array).slice()
}

/** The bytes of rows, for `rowsFrom`. */
export function rowBytes({ values, labels, weights }: RowCopy): Uint8Array[] {
  return [values, labels, ...(weights ? [weights.score, weights.gradient] : [])].map(bytesOf)
}

/** @throws RangeError if there are fewer bytes */
export function rowsFrom(
  bytes: Uint8Array,
  { size, width, isWeighted }: { readonly size: number; readonly width: number; readonly isWeighted: boolean }
): RowCopy {
  const copy = bytes.slice()
  let at = 0
  const next = (length: number) => {
    at += 4 * length
    return new Float32Array(copy.buffer, at - 4 * length, length)
  }
  const [values, labels] = [next(size * width), next(size)]
  return { size, values, labels, ...(isWeighted && { weights: { score: next(size), gradient: next(size) } }) }
}
