/** The thread that reads and parses a stream for another thread. */
import { once } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { workerData } from 'node:worker_threads'
import { openStream } from '../open.js'
import type { ExampleStream } from '../types.js'
import {
  type ReaderInit,
  type ReaderMessage,
  type ReaderRequest,
  RingWriter,
  type StreamFacts,
  toSent
} from './ring.js'

const { ring, port } = workerData as ReaderInit
const post = (message: ReaderMessage) => port.postMessage(message)
const writer = new RingWriter(ring, memory => post({ kind: 'slot', memory }))
const NOTHING = {
  size: 0,
  labels: new Float32Array(0),
  numeric: new Int32Array(0),
  offsets: new Int32Array(1),
  indices: new Int32Array(0),
  values: new Float32Array(0)
}

let sent: StreamFacts | undefined

/** Sends the facts if they have changed. */
function sendFacts(stream: ExampleStream): void {
  const { skipped: _, share: __, [Symbol.asyncIterator]: ___, ...known } = stream
  // The list grows while the stream is read.
  const { newClasses } = known
  const facts = newClasses ? { ...known, newClasses: [...newClasses] } : known
  if (isDeepStrictEqual(facts, sent)) return
  sent = facts
  post({ kind: 'facts', facts })
}

async function main(): Promise<void> {
  const [{ options, reports }] = (await once(port, 'message')) as [ReaderRequest]
  let stream: ExampleStream | undefined
  try {
    stream = await openStream({
      ...options,
      onMalformed: reports ? malformed => post({ kind: 'malformed', malformed }) : undefined,
      onNotice: (notice, importance) => post({ kind: 'notice', notice, importance })
    })
    sendFacts(stream)
    // Signals that the stream is open.
    writer.write(NOTHING, stream)
    for await (const rows of stream) {
      sendFacts(stream)
      if (!writer.write(rows, stream)) break
    }
  } catch (error) {
    post({ kind: 'failed', error: toSent(error as Error) })
  }
  if (stream !== undefined) sendFacts(stream)
  writer.end(stream ?? { skipped: 0, share: undefined })
}

void main()
