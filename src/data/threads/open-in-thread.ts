/**
 * Opens a stream whose rows are read and parsed in a thread of their own, so that parsing and learning overlap. The rows, their
 * order and all errors are those of `openStream`.
 */
import { isCustomFormat } from '../formats/custom.js'
import { openStream } from '../open.js'
import { Preparation } from '../prepare.js'
import type { StreamOptions } from '../stream-options.js'
import type { ExampleStream } from '../types.js'
import { ReaderThread, startReader } from './reader.js'
import type { StreamFacts } from './ring.js'

/**
 * Reads in a thread of its own if the input is a large file and the machine has a second core; else like `openStream`.
 * @param started a thread that `startReader` has started for these options
 * @throws the errors of `openStream`, with their names and codes
 */
export async function openInThread(options: StreamOptions, started?: ReaderThread): Promise<ExampleStream> {
  if (!canMove(options)) await started?.stop()
  const thread = canMove(options) ? (started ?? startReader(options)) : undefined
  return thread === undefined ? openStream(options) : openThreaded(options, thread)
}

/** Readers of plug-ins, and rows of tokens, exist in this thread only. */
function canMove({ tokens, format }: Pick<StreamOptions, 'format' | 'tokens'>): boolean {
  return tokens === undefined && !isCustomFormat(format)
}

/** The same, always in a thread. @throws the errors of `openStream` */
export async function openThreaded(options: StreamOptions, thread = new ReaderThread()): Promise<ExampleStream> {
  const { scaling, onMalformed, onNotice, signal, ...plain } = options
  await thread.open({ ...plain, scaleLater: true }, { onMalformed, onNotice })
  let isIterated = false
  const stream = {
    get skipped() {
      return thread.info.skipped
    },
    get share() {
      return thread.info.share
    },
    [Symbol.asyncIterator]() {
      if (isIterated) throw new Error('a stream can be iterated only once: open another one')
      isIterated = true
      const rows = thread.rows(signal)
      const { schema, hashBits, scale = 'none' } = thread.facts
      const { constant = false, scaleLater } = options
      if (scaleLater) return rows
      return Preparation.for({ schema, hashBits, constant, scale }, scaling)?.rows(rows) ?? rows
    }
  }
  for (const key of Object.keys(thread.facts) as (keyof StreamFacts)[]) {
    Object.defineProperty(stream, key, { enumerable: true, get: () => thread.facts[key] })
  }
  return stream as unknown as ExampleStream
}
