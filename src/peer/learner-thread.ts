/** Entry of the learner thread: connects a LearnerLoop to its stream, a clock and the messages of the main thread. */
import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { DeviceError } from '../device/types.js'
import { ExampleError } from '../learner/index.js'
import {
  createParser,
  type ExampleStream,
  InputError,
  type Malformed,
  MalformedInputError,
  openStream,
  type Rows,
  type StreamOptions,
  type StreamPosition
} from '../streams/index.js'
import { growingNames, learningParts } from '../task/learning-spec.js'
import { loadPlugins } from '../task/plugins.js'
import { optionsOf } from '../task/stream.js'
import { requestedText } from '../task/text.js'
import { LateLabelError, rowCopy } from './late-labels.js'
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
  const stopped = new AbortController()
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
        stopped.abort()
        if (init.journal) loop.checkpoint()
        post({ kind: 'status', status: loop.status(), recent: [] })
        post({ kind: 'stopped' })
        port.close()
      } else loop.receive(message)
    })
  })
  const options = {
    resume: loop.resume,
    onMalformed: malformed(loop),
    onNotice: (line: string) => loop.notice(line),
    signal: stopped.signal
  }
  const stream = init.stream && (await openStream({ ...unscaled(init.stream), ...options }))
  post({ kind: 'status', status: loop.status(), recent: [] })
  const pause = (ms: number) => (ms > 0 ? sleep(ms) : yieldToEventLoop())
  try {
    await Promise.all([stream && loop.run(stream, pause), loop.recover(place => openAt(place, stopped.signal), pause)])
  } catch (error) {
    if (stopped.signal.aborted) return
    // The input or the device failed, so the learned state is valid.
    const isExternal = error instanceof InputError || (error as { readonly code?: unknown }).code === DeviceError.code
    if (isExternal && init.journal) loop.checkpoint()
    throw error
  }
}

/** Opens the stream at an earlier position, to read rows again that were reported then. */
function openAt(resume: StreamPosition, signal: AbortSignal): Promise<ExampleStream> {
  const stream = unscaled(init.stream as StreamOptions)
  return openStream({ ...stream, from: 'stored', follow: false, resume, signal, onMalformed: () => undefined })
}

function malformed(loop: LearnerLoop): StreamOptions['onMalformed'] {
  return ({ source, line, column, reason }) => loop.warn(`${source}:${line}:${column}: ${reason}`)
}

/** Leaves lags and scaling to the loop. */
function unscaled(options: StreamOptions): StreamOptions {
  return { ...options, scaleLater: true }
}

async function request(loop: LearnerLoop, id: number, { action, format, body }: InputRequest): Promise<void> {
  try {
    const learns = action === 'learn'
    if (learns && format === 'jsonl' && init.labelDelay !== undefined) {
      post({ kind: 'answer', id, answer: await learnWithIds(loop, body) })
      return
    }
    const malformed: Malformed[] = []
    const rows = await rowsOf(format, body, learns, malformed)
    // If nothing can be scored, the request is wrong.
    if (rows.size === 0 && malformed.length > 0) throw new MalformedInputError(malformed[0])
    const { predictions, ...answer } = loop.answer(rows, learns)
    post({ kind: 'answer', id, answer: { ...answer, predictions: withFailures(predictions, malformed) } })
  } catch (error) {
    post({ kind: 'failed-request', id, reason: (error as Error).message })
  }
}

/** @param malformed receives inputs that cannot be scored; those to learn throw */
async function rowsOf(
  format: InputRequest['format'],
  body: Uint8Array,
  learns: boolean,
  malformed: Malformed[]
): Promise<Rows> {
  const text = init.spec.network?.text
  if (text !== undefined) {
    if (format !== 'jsonl' || text.label === undefined) {
      throw new Error('the model reads texts: a classifier takes JSON objects with the columns of its data')
    }
    return requestedText(text, body, learns)
  }
  const parser = createParser(format, {
    ...optionsOf(init.spec, format),
    source: 'request',
    strict: learns,
    unlabelled: !learns,
    ids: true,
    newClasses: learns && growingNames(init.spec) !== undefined,
    onMalformed: one => malformed.push(one)
  })
  return parser.push(terminated(body))
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

/** Learns lines of inputs, and of labels for inputs that were predicted before: `{"id": …, "label": …}`. */
async function learnWithIds(loop: LearnerLoop, body: Uint8Array): Promise<InputAnswer> {
  const lines = Buffer.from(body)
    .toString('utf8')
    .split('\n')
    .filter(line => line.trim() !== '')
  const late = lines.map(line => lateLabel(line, loop.classNames))
  const inputs = lines.filter((_, index) => late[index] === undefined)
  // Nothing is learned if an input or a label is malformed.
  const rows = inputs.length === 0 ? undefined : await rowsOf('jsonl', Buffer.from(inputs.join('\n')), true, [])
  const predictions: InputAnswer['predictions'][number][] = []
  let row = 0
  for (const one of late) {
    if (one !== undefined) predictions.push(learnLate(loop, one))
    else predictions.push(...loop.answer(rowCopy(rows as Rows, row++), true).predictions)
  }
  return { predictions, predictor: loop.status().predictor }
}

interface LateLabel {
  readonly id: string
  /** Class number, or the number to predict. */
  readonly label: number
}

/** The label of a line that has no input. @throws Error for a label that the model does not know */
function lateLabel(line: string, classNames: readonly string[] | undefined): LateLabel | undefined {
  if (!line.includes('"id"')) return undefined
  const { id, label, ...others } = JSON.parse(line) as Record<string, unknown>
  if (typeof id !== 'string' || label === undefined || Object.keys(others).length > 0) return undefined
  const names = classNames ?? init.spec.network?.text?.classNames
  if (names === undefined) return { id, label: label === -1 ? 0 : Number(label) }
  const number = names.indexOf(String(label))
  if (number >= 0) return { id, label: number }
  throw new Error(`label ${JSON.stringify(label)} is not among the class names ${names.join(', ')}`)
}

function learnLate(loop: LearnerLoop, { id, label }: LateLabel): InputAnswer['predictions'][number] {
  try {
    return loop.learnLate(id, label)
  } catch (error) {
    if (error instanceof LateLabelError) return { id, error: error.message, code: error.code }
    if (error instanceof ExampleError) return { id, error: error.message, code: 'ERR_REQUEST' }
    throw error
  }
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
