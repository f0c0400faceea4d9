/** Entry of the learner thread: connects a LearnerLoop to its stream, a clock and the messages of the main thread. */
import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { DeviceError } from '../device/types.js'
import { createParser, InputError, openStream, type StreamOptions } from '../streams/index.js'
import { learningParts, parserOptions } from '../task/learning-spec.js'
import { loadPlugins } from '../task/plugins.js'
import { LearnerLoop } from './learner-loop.js'
import type { FromLearner, InputRequest, LearnerInit, ToLearner } from './thread-messages.js'

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
      if (message.kind === 'request') request(loop, message.id, message)
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
  const stream = init.stream && (await openStream({ ...unscaled(init.stream), onMalformed: malformed(loop) }))
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

function request(loop: LearnerLoop, id: number, { action, format, body }: InputRequest): void {
  try {
    const { columns, ...parsing } = parserOptions(init.spec)
    if (format === 'vw' && parsing.hashBits === undefined) {
      throw new Error(
        'VW features have names, which this model does not hash: send LIBSVM, or start it with --hash-bits'
      )
    }
    const named = format === 'jsonl' ? { columns } : {}
    const options = { ...parsing, ...named, source: 'request', strict: true, unlabelled: action === 'predict' }
    const rows = createParser(format, options).push(terminated(body))
    post({ kind: 'answer', id, answer: loop.answer(rows, action === 'learn') })
  } catch (error) {
    post({ kind: 'failed-request', id, reason: (error as Error).message })
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
