/** What a learner thread does: connects a LearnerLoop to its stream, a clock and the messages of the main thread. */
import { nextTurn, sleep } from '#platform'
import type { StreamOptions, StreamPosition } from '../data/index.js'
import { type ExampleStream, InputError } from '../data/parsing.js'
import { DeviceError } from '../device/types.js'
import type { DevicePool } from '../l2l/index.js'
import type { Layout } from '../learning/index.js'
import type { SharedMemory } from '../program/shared-memory.js'
import { learningParts } from '../task/learning-parts.js'
import { Downloads, type EncodedFile } from './downloads.js'
import { PartlyLearnedError, UnavailableError } from './errors.js'
import { LearnerLoop } from './learner-loop.js'
import { answerRequest, type ReadText } from './learner-requests.js'
import type { SentParts } from './predictor-parts.js'
import type {
  FromLearner,
  RequestHandlers,
  RequestName,
  Requests,
  Serving,
  StoredHead,
  StoredPredictor,
  ThreadInit,
  ToLearner
} from './thread-messages.js'
import type { ThreadPort } from './thread-port.js'
import { Ticker } from './ticker.js'

/** What a learner thread is started with. */
export interface LearnerThread {
  readonly init: ThreadInit
  readonly port: ThreadPort<FromLearner, ToLearner>
  /** Opens the stream of the init. */
  readonly open: (options: StreamOptions) => Promise<ExampleStream>
  /** Reads the texts of a request. */
  readonly readText: ReadText
  /** Maps the file of a program. @default there is no program */
  readonly map?: (path: string, layout: Layout) => Promise<SharedMemory>
  /** Encodes the serving predictor for download. */
  readonly encode: (options: Pick<ThreadInit, 'spec' | 'predictWith'>, serving: Serving) => Promise<EncodedFile>
}

/** Learns until a message stops it. Failures are messages. */
export async function runLearner(thread: LearnerThread): Promise<void> {
  const { init, port } = thread
  try {
    const parts = await learningParts(init.spec, init.execution ?? {}, init.budget?.options.clip)
    const saved = init.saved && (await storedPredictor(init.saved, port))
    await serve(
      new LearnerLoop(
        { ...init, saved },
        parts,
        (message, transfer) => port.post(message, transfer),
        () => performance.now(),
        thread.map
      ),
      thread,
      parts.devices
    )
  } catch (error) {
    fail(port, error)
  }
}

/** Asks for the blocks of the stored predictor one by one, so that the main thread need not hold all of them. */
async function storedPredictor(
  { count, ...others }: StoredHead,
  port: LearnerThread['port']
): Promise<StoredPredictor> {
  const blocks: Uint8Array[] = []
  for (let index = 0; index < count; index++) {
    const answer = new Promise<Uint8Array>((resolve, reject) =>
      port.onMessage(message => {
        if (message.kind === 'stored-block') resolve(message.bytes)
        else if (message.kind === 'stop') reject(new UnavailableError('the peer is stopping'))
      })
    )
    port.post({ kind: 'get-stored-block', index })
    blocks.push(await answer)
  }
  return { ...others, blocks }
}

/** Reports the error that ends the thread. */
export function fail(port: LearnerThread['port'], error: unknown): void {
  const { name, message, code } = error as Error & { code?: string }
  port.post({ kind: 'failed', name, code, reason: message })
  port.close()
}

async function serve(
  loop: LearnerLoop,
  { init, port, open, readText, encode }: LearnerThread,
  devices: DevicePool | undefined
): Promise<void> {
  const stopped = new AbortController()
  const downloads = new Downloads()
  /** Requests that are not answered yet. */
  const requests = new Set<Promise<void>>()
  const ticker = new Ticker(init.period, count => guarded(() => loop.tick(count)))
  loop.onLearned = () => ticker.wake()
  const guarded = (action: () => void) => {
    try {
      action()
    } catch (error) {
      ticker.stop()
      fail(port, error)
    }
  }
  /** After the last checkpoint, nothing changes what it contains. */
  let isLast = false
  let hasNoticed = false
  // Clients choose the keys, so only the first one that is no column is logged.
  const onNotice = (line: string) => {
    if (!hasNoticed) loop.notice(line)
    hasNoticed = true
  }
  const handlers: RequestHandlers = {
    inputs: given => answerRequest(loop, { ...init, readText, onNotice }, given),
    save: () => loop.saved(),
    parts: ({ query, held }) => loop.parts(query, held),
    download: async () => downloads.start(await encode(init, loop.lastingServing())),
    piece: ({ download }) => downloads.next(download),
    block: ({ checkpoint, index }) => loop.block(checkpoint, index)
  }
  const answer = async <Name extends RequestName>(id: number, name: Name, given: Requests[Name]['given']) => {
    try {
      const result = await handlers[name](given)
      port.post({ kind: 'answer', id, result }, transferable(result))
    } catch (error) {
      port.post(failureOf(id, error as Error))
    }
  }
  port.onMessage(message => {
    ticker.wake()
    guarded(() => {
      if (message.kind === 'request') {
        const answered = answer(message.id, message.name, message.given as never).finally(() =>
          requests.delete(answered)
        )
        if (message.name === 'inputs') requests.add(answered)
      } else if (message.kind === 'end-download') downloads.end(message.download)
      else if (message.kind === 'device-joined') {
        const prepared = devices?.prepare()
        port.post({ kind: 'device', device: message.device, init: prepared }, prepared && [prepared.port])
      } else if (message.kind === 'device-ready') devices?.ready(message.worker, message)
      else if (message.kind === 'device-lost') devices?.lost(message.worker)
      else if (message.kind === 'stop') {
        ticker.stop()
        loop.stop()
        stopped.abort()
        // They end with their current slice.
        Promise.all(requests)
          .then(async () => {
            if (init.journal && message.stores) loop.checkpoint()
            isLast = true
            if (message.stores) await loop.stored()
            port.post({ kind: 'status', status: loop.status(), recent: [] })
            port.post({ kind: 'stopped' })
            port.close()
          })
          .catch(error => fail(port, error))
      } else if (message.kind !== 'stored-block' && (!isLast || message.kind === 'stored')) loop.receive(message)
    })
  })
  const options = {
    resume: loop.resume,
    onMalformed: malformed(loop),
    onNotice: (line: string) => loop.notice(line),
    signal: stopped.signal
  }
  const stream = init.stream && (await open({ ...unscaled(init.stream), ...options }))
  port.post({ kind: 'status', status: loop.status(), recent: [] })
  const pause = (ms: number) => (ms > 0 ? sleep(ms) : nextTurn())
  try {
    await loop.begun
    await Promise.all([
      stream && loop.run(stream, pause),
      loop.recover(place => open(earlier(place, init, stopped.signal)), pause)
    ])
  } catch (error) {
    if (stopped.signal.aborted) return
    // The input or the device failed, so the learned state is valid.
    const isExternal = error instanceof InputError || (error as { readonly code?: unknown }).code === DeviceError.code
    if (isExternal && init.journal) loop.checkpoint()
    if (isExternal) await loop.stored()
    throw error
  }
}

function failureOf(id: number, error: Error): FromLearner {
  if (error instanceof PartlyLearnedError) return { kind: 'interrupted', id, learned: error.learned }
  if (error instanceof UnavailableError) return { kind: 'interrupted', id }
  return { kind: 'failed-request', id, reason: error.message, code: (error as NodeJS.ErrnoException).code }
}

/** The stream at an earlier position, to read rows again that were reported then. */
function earlier(resume: StreamPosition, { stream }: ThreadInit, signal: AbortSignal): StreamOptions {
  const options = unscaled(stream as StreamOptions)
  return { ...options, from: 'stored', follow: false, resume, signal, onMalformed: () => undefined }
}

function malformed(loop: LearnerLoop): StreamOptions['onMalformed'] {
  return ({ source, line, column, reason }) => loop.warn(`${source}:${line}:${column}: ${reason}`)
}

/** Leaves scaling to the loop. */
function unscaled(options: StreamOptions): StreamOptions {
  return { ...options, scaleLater: true }
}

/** The memory of a result that is moved to the other thread. */
function transferable(result: unknown): ArrayBuffer[] {
  const { head, blocks = [] } = Object(result) as Partial<SentParts>
  const arrays = result instanceof Uint8Array ? [result] : head ? [head, ...blocks] : []
  return arrays.map(({ buffer }) => buffer as ArrayBuffer)
}
