/** What the reader thread gets and sends. Rows travel in the ring; all else is sent before the block that it belongs to. */
import type { MessagePort } from 'node:worker_threads'
import type { StreamOptions } from '../open.js'
import type { ExampleStream, Malformed } from '../types.js'
import type { RingMemory, SlotMemory } from './ring.js'

/** The properties of a stream, apart from the two that change with every block. */
export type StreamFacts = Readonly<Partial<Omit<ExampleStream, 'skipped' | 'share' | typeof Symbol.asyncIterator>>>

export interface ReaderInit {
  readonly ring: RingMemory
  readonly port: MessagePort
}

/** Opens the stream of a thread. Each thread reads one. */
export interface ReaderRequest {
  /** Without functions. */
  readonly options: StreamOptions
  /** Whether malformed inputs are sent. */
  readonly reports: boolean
}

/** An error, which keeps its name and code. */
export interface SentError {
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly code?: unknown
}

export type ReaderMessage =
  | { readonly kind: 'slot'; readonly memory: SlotMemory }
  | { readonly kind: 'facts'; readonly facts: StreamFacts }
  | { readonly kind: 'notice'; readonly notice: string; readonly importance?: number }
  | { readonly kind: 'malformed'; readonly malformed: Malformed }
  | { readonly kind: 'failed'; readonly error: SentError }

export function toSent({ name, message, stack, code }: Error & { readonly code?: unknown }): SentError {
  return { name, message, stack, code }
}

/** The error as it was thrown in the other thread, apart from its class. */
export function fromSent({ name, message, stack, code }: SentError): Error {
  const error = new (name === 'TypeError' ? TypeError : Error)(message)
  return Object.assign(error, { name, stack, ...(code !== undefined && { code }) })
}
