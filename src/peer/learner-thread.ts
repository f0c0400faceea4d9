/** Entry of the learner thread: connects a LearnerLoop to its stream, a clock and the messages of the main thread. */
import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { DeviceError } from '../device/types.js'
import {
  createParser,
  InputError,
  type Malformed,
  MalformedInputError,
  openStream,
  type StreamOptions
} from '../streams/index.js'
import { learningParts } from '../task/learning-spec.js'
import { loadPlugins } from '../task/plugins.js'
import { optionsOf } from '../task/stream.js'
import { requestedText } from '../task/text.js'
import { LearnerLoop } from './learner-loop.js'
import type { FromLearner, InputAnswer, InputRequest, LearnerInit, ToLearner } from './thread-messages.js'

const port = parentPort as MessagePort
const init = workerData as LearnerInit

function post(message: FromLearner, transfer: readonly ArrayBuffer[] = []): void {
  port.postMessage(message, transfer)
}

function fail(error: unknown): void {
  const { name, message, code } = error as Error & { code?: string }
  post({ kind: 'failed', name, code, reason: message })
  port.close()
}

async function serve(loop: LearnerLoop): Promise<void> {
  const timer = setInterval(() => guarded(() => loop.tick()), init.period)
  const guarded = (action: () => void) => {
    try {
      action()
    } catch (error) {
      clearInterval(timer)
      fail(error)
    }
  }
  port.on('message', (message: ToLearner) => {
    guarded(() => {
      if (message.kind === 'request') void request(loop, message.id, message)
      else if (message.kind === 'stop') {
        clearInterval(timer)
        loop.stop()
        if (init.durable) loop.checkpoint()
        post({ kind: 'status', status: loop.status(), recent: [] })
        post({ kind: 'stopped' })
        port.close()
      } else loop.receive(message)
    })
  })
  const stream =
    init.stream &&
    (await openStream({
      ...unscaled(init.stream),
      onMalformed: malformed(loop),
      onNotice: notice => loop.warn(notice)
    }))
  post({ kind: 'status', status: loop.status(), recent: [] })
  if (stream === undefined) return
  try {
    await loop.run(stream, ms => (ms > 0 ? sleep(ms) : yieldToEventLoop()))
  } catch (error) {
    // The input or the device failed, so the learned state is valid.
    const isExternal = error instanceof InputError || (error as { readonly code?: unknown }).code === DeviceError.code
    if (isExternal && init.durable) loop.checkpoint()
    throw error
  }
}

function malformed(loop: LearnerLoop): StreamOptions['onMalformed'] {
  return ({ source, line, column, reason }) => loop.warn(`${source}:${line}:${column}: ${reason}`)
}

/** Removes the scaling, which the loop does. */
function unscaled({ scale: _scale, ...options }: StreamOptions): StreamOptions {
  return options
}

async function request(loop: LearnerLoop, id: number, { action, format, body }: InputRequest): Promise<void> {
  try {
    const learns = action === 'learn'
    const text = init.spec.network?.text
    if (text !== undefined) {
      if (format !== 'jsonl' || text.classNames === undefined) {
        throw new Error('the model reads texts: a classifier takes JSON objects with the columns of its data')
      }
      post({ kind: 'answer', id, answer: loop.answer(await requestedText(text, body, learns), learns) })
      return
    }
    const malformed: Malformed[] = []
    const parser = createParser(format, {
      ...optionsOf(init.spec, format),
      source: 'request',
      strict: learns,
      unlabelled: !learns,
      onMalformed: one => malformed.push(one)
    })
    const rows = parser.push(terminated(body))
    // If nothing can be scored, the request is wrong.
    if (rows.size === 0 && malformed.length > 0) throw new MalformedInputError(malformed[0])
    const { predictions, ...answer } = loop.answer(rows, learns)
    post({ kind: 'answer', id, answer: { ...answer, predictions: withFailures(predictions, malformed) } })
  } catch (error) {
    post({ kind: 'failed-request', id, reason: (error as Error).message })
  }
}

/** The answers to all inputs in their order, those that cannot be scored included. */
function withFailures(
  predictions: InputAnswer['predictions'],
  malformed: readonly Malformed[]
): InputAnswer['predictions'] {
  const failures = (index: number) =>
    malformed
      .filter(one => one.index === index)
      .map(({ line, column, reason }) => ({ error: `request:${line}:${column}: ${reason}` }))
  if (malformed.length === 0) return predictions
  return [
    ...predictions.flatMap((prediction, index) => [...failures(index), prediction]),
    ...failures(predictions.length)
  ]
}

/** Appends the newline that completes the last row. */
function terminated(body: Uint8Array): Uint8Array {
  return Buffer.concat([body, Buffer.from('\n')])
}

async function start(): Promise<void> {
  await loadPlugins(init.plugins)
  const parts = await learningParts(init.spec, init.execution ?? {})
  await serve(new LearnerLoop(init, parts, post, () => performance.now()))
}

start().catch(fail)
