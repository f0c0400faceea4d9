import type { MessagePort } from 'node:worker_threads'

/** One end of the messages between two threads of a peer: worker threads under Node.js, Web Workers in browsers. */
export interface ThreadPort<Sent, Received> {
  /** @param transfer buffers and ports whose ownership moves to the other thread */
  post(message: Sent, transfer?: readonly (ArrayBuffer | MessagePort)[]): void
  /** Sets the handler of messages, which receives those that have arrived before as well. */
  onMessage(handler: (message: Received) => void): void
  /** Sets the handler for the end of the other thread: its error, or what happened. */
  onFailure(handler: (reason: Error | string) => void): void
  /** Receives no further messages. A thread ends once nothing else keeps it running. */
  close(): void
}
