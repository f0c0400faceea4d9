/**
 * A peer's end of a device worker in another process. It stands in for the thread of a local worker: the learner thread submits tasks
 * and sums gradients in shared memory, and this thread carries both over the line.
 */
import type { MessagePort } from 'node:worker_threads'
import { DeviceError } from '../../device/types.js'
import { codeLength } from '../workers/gradient-codes.js'
import {
  ABORTED,
  gradientBlockCell,
  gradientsCell,
  MAIL,
  messagesCell,
  REDUCED,
  RING_SIZE,
  type WorkerInit,
  type WorkerMessage,
  type WorkerTask,
  wakeStages
} from '../workers/worker-handle.js'
import { MailCarrier, type MailPart } from './mail.js'
import { copyOf, type DeviceLine, rowBytes, type ToPeer, type ToWorker } from './messages.js'

/** Resolves when an integer differs from the value. */
async function changed(cells: Int32Array, cell: number, value: number): Promise<void> {
  const wait = Atomics.waitAsync(cells, cell, value)
  if (wait.async) await wait.value
}

export class RemoteDevice {
  readonly #line: DeviceLine
  readonly #init: WorkerInit
  readonly #cells: Int32Array
  readonly #port: MessagePort
  /** The version of each block that the worker has. */
  readonly #sent: Int32Array
  /** Messages of the worker that were processed, in order. */
  #done: Promise<void> = Promise.resolve()
  /** Gradients of the task that have arrived. */
  #arrived = 0
  #attempt = -1
  #stage: WorkerTask['stage']
  #rows = 0
  #isBusy = false
  readonly #mail: MailCarrier
  #isOpen = true

  /**
   * Sends the network to the worker.
   * @param init of the learner thread's pool
   * @param onReady called with the name of the worker's device when it can execute tasks
   * @param onClosed called once with the reason
   */
  constructor(
    line: DeviceLine,
    init: WorkerInit,
    onReady: (device: string) => void,
    onClosed: (reason: string) => void
  ) {
    this.#line = line
    this.#init = init
    this.#port = init.port
    this.#cells = new Int32Array(init.cells)
    this.#sent = new Int32Array(init.weights.blocks.length).fill(-1)
    this.#mail = new MailCarrier(this.#cells, (part, bytes) => this.#send(part, bytes))
    line.receive({
      message: (message, bytes) => this.#receive(message as ToPeer, bytes, onReady),
      closed: reason => {
        this.#end(reason)
        onClosed(reason)
      }
    })
    init.port.on('message', (message: WorkerTask | 'stop') => {
      if (message === 'stop') line.close('the peer stops')
      else this.#submit(message)
    })
    init.port.on('close', () => line.close('the peer has given the worker up'))
    this.#sendNetwork()
  }

  #send(message: ToWorker, bytes?: readonly Uint8Array[]): void {
    this.#line.send(message, bytes)
  }

  #sendNetwork(): void {
    const { network, weights, coded } = this.#init
    const { frozen = [], ...executorOptions } = this.#init.executorOptions
    const layers = frozen.flatMap((block, layer) => (block === undefined ? [] : [layer]))
    const lengths = weights.blocks.map(({ length }) => length)
    this.#send({ kind: 'network', network, executorOptions, lengths, frozen: layers, coded })
    for (const layer of layers) this.#send({ kind: 'frozen', layer }, [copyOf(frozen[layer] as Float32Array)])
  }

  #submit({ rows, stage, ...task }: WorkerTask): void {
    const { blocks, versions } = this.#init.weights
    this.#isBusy = true
    this.#arrived = 0
    this.#attempt = task.attempt
    const current = versions ?? this.#sent.map(version => version + 1)
    const needed = stage?.blocks ?? blocks.keys()
    const changed = [...needed].filter(block => current[block] !== this.#sent[block])
    const { ports, ...place } = stage ?? {}
    if (ports) this.#mail.connect(ports)
    this.#stage = stage
    this.#rows = rows.size
    const { size } = rows
    const width = rows.values.length / Math.max(1, size)
    this.#send(
      {
        kind: 'task',
        ...task,
        stage: stage && (place as typeof stage),
        isNewPlace: ports !== undefined,
        size,
        width,
        isWeighted: rows.weights !== undefined,
        blocks: changed
      },
      rowBytes(rows)
    )
    if (stage) void this.#watch(task.attempt)
    for (const block of changed) {
      this.#sent[block] = current[block]
      this.#send({ kind: 'weights', block }, [copyOf(blocks[block])])
    }
  }

  #receive(message: ToPeer, bytes: Uint8Array, onReady: (device: string) => void): void {
    if (message.kind === 'ready') onReady(String(message.device))
    else if (message.kind === 'gradient') {
      const number = this.#arrived++
      this.#done = this.#done.then(() => this.#store(number, message.block, bytes))
    } else if (message.kind === 'mail') {
      const isExpected = this.#stage !== undefined && hasShape(message, this.#stage, this.#rows)
      if (!isExpected || !this.#mail.deliver(message, bytes)) this.#line.close('its tensor has another shape')
    } else if (message.kind === 'gradients') {
      const gradients = partsOf(bytes, message.lengths)
      if (gradients === undefined) this.#line.close('its gradients are malformed')
      else if (this.#isBusy) this.#answer({ kind: 'gradients', gradients })
    } else if (message.kind === 'result') {
      const { result } = message
      const isResult =
        result.kind === 'failed' ||
        (result.kind === 'done' && Number.isFinite(result.loss) && Number.isFinite(result.hits))
      if (!isResult) this.#line.close('its result is not a number')
      else this.#done = this.#done.then(() => this.#reply(result))
    } else this.#line.close('it sent an unknown message')
  }

  /** Puts a gradient into the ring as soon as the learner thread has summed the one in its place. */
  async #store(number: number, block: number, bytes: Uint8Array): Promise<void> {
    const { gradients, worker, weights, coded } = this.#init
    const buffer = gradients[number % RING_SIZE]
    if (!Number.isInteger(block) || weights.blocks[block] === undefined) return this.#line.close('it has no such block')
    const length = coded ? codeLength(coded, block) : weights.blocks[block].length
    if (bytes.length !== Float32Array.BYTES_PER_ELEMENT * length)
      return this.#line.close('its gradient has another length than the block')
    for (;;) {
      const reduced = Atomics.load(this.#cells, REDUCED)
      if (!this.#isOpen || Atomics.load(this.#cells, ABORTED) === this.#attempt) break
      if (reduced > number - RING_SIZE) {
        new Uint8Array(buffer.buffer, buffer.byteOffset).set(bytes)
        Atomics.store(this.#cells, gradientBlockCell(worker, number), block)
        Atomics.store(this.#cells, gradientsCell(worker), number + 1)
        this.#signal()
        break
      }
      await changed(this.#cells, REDUCED, reduced)
    }
    this.#send({ kind: 'stored', count: number + 1 })
  }

  /** Tells the worker when another stage has failed. */
  async #watch(attempt: number): Promise<void> {
    while (this.#isBusy && this.#attempt === attempt) {
      const seen = Atomics.load(this.#cells, MAIL)
      if (Atomics.load(this.#cells, ABORTED) === attempt) return this.#send({ kind: 'abort', attempt })
      await changed(this.#cells, MAIL, seen)
    }
  }

  /** Other stages wait for a failed one no longer. */
  #abortStages(): void {
    if (this.#stage === undefined) return
    Atomics.store(this.#cells, ABORTED, this.#attempt)
    wakeStages(this.#cells)
  }

  #reply(result: WorkerMessage): void {
    if (!this.#isBusy) return
    this.#isBusy = false
    if (result.kind === 'failed') this.#abortStages()
    this.#answer(result)
  }

  #answer(result: WorkerMessage): void {
    this.#port.postMessage(result)
    this.#signal()
  }

  /** The learner thread may wait for a task that nobody executes any more, or submit one before it learns of the end. */
  #end(reason: string): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (this.#isBusy) this.#abortStages()
    this.#isBusy = false
    this.#mail.close()
    this.#answer({ kind: 'failed', code: DeviceError.code, reason })
    Atomics.notify(this.#cells, REDUCED)
    this.#port.close()
  }

  #signal(): void {
    Atomics.add(this.#cells, messagesCell(this.#init.worker), 1)
    Atomics.notify(this.#cells, messagesCell(this.#init.worker))
  }
}

/** Divides the bytes into arrays of these lengths; undefined if they have others. */
function partsOf(bytes: Uint8Array, lengths: readonly number[]): Float32Array[] | undefined {
  const isWhole =
    Array.isArray(lengths) &&
    lengths.every(length => Number.isInteger(length) && length >= 0) &&
    4 * lengths.reduce((sum, length) => sum + length, 0) === bytes.length
  if (!isWhole) return undefined
  let at = 0
  return lengths.map(length => {
    at += 4 * length
    return new Float32Array(bytes.slice(at - 4 * length, at).buffer)
  })
}

/** Whether a tensor is of some rows at the boundary of the chunks that it says. */
function hasShape(
  { key, shape, dtype }: MailPart,
  { inputs }: NonNullable<WorkerTask['stage']>,
  most: number
): boolean {
  const [, kind, chunk] = /^(forward|backward)\/(\d{1,6})\/\d{1,9}$/.exec(key) ?? []
  const expected = inputs[Number(chunk) + (kind === 'backward' ? 1 : 0)]
  if (expected === undefined || !Array.isArray(shape) || dtype !== 'float32') return false
  const [rows, ...sample] = shape
  const isSample = sample.length === expected.length && sample.every((size, i) => size === expected[i])
  return isSample && Number.isInteger(rows) && rows > 0 && rows <= most
}
