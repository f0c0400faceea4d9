/**
 * A device worker's end of its connection to a peer. The thread that executes tasks is that of a worker on the peer's machine; its
 * weights, gradients and signals are in memory that it shares with this thread.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { Execution } from '../executor/types.js'
import { SharedSignals } from '../training/shared-signals.js'
import { GradientEncoder } from '../workers/gradient-codes.js'
import {
  ABORTED,
  allocateGradients,
  cellCount,
  gradientBlockCell,
  gradientsCell,
  messagesCell,
  REDUCED,
  RING_SIZE,
  type StagePorts,
  tasksCell,
  type WorkerInit,
  type WorkerMessage,
  type WorkerTask,
  wakeStages
} from '../workers/worker-handle.js'
import { BlockOwner, type OwnerEvents } from './block-owner.js'
import { MailCarrier } from './mail.js'
import { bytesOf, copyOf, type DeviceLine, rowsFrom, type ToPeer, type ToWorker } from './messages.js'

/** Index of the only worker of this process. */
const SELF = 0

/** How this machine executes tasks. */
type OwnDevice = Pick<Execution, 'backend' | 'deviceMemory'>

/** Handlers of events at a worker. A task has been executed when `executed` is called, or has failed. */
export interface DeviceEvents extends OwnerEvents {
  /** The device is open, and executes tasks. */
  ready(device: string): void
}

/**
 * Executes the tasks of a peer until the line ends.
 * @param token with which the peer admits workers
 * @returns why the line has ended
 */
export function serveDevice(line: DeviceLine, token: string, own: OwnDevice, events: DeviceEvents): Promise<string> {
  return new Promise(resolve => {
    let device: DeviceProcess | undefined
    let owner: BlockOwner | undefined
    const send = (message: ToPeer, bytes?: readonly Uint8Array[]) => line.send(message, bytes)
    line.receive({
      message(received, bytes) {
        const message = received as ToWorker
        if (message.kind === 'network') device = new DeviceProcess(message, own, events, send, owner)
        else if (message.kind === 'hold') owner = new BlockOwner(message, events, send)
        else if (message.kind === 'step' || message.kind === 'read' || message.kind === 'write')
          owner?.receive(message, bytes)
        else device?.receive(message, bytes)
        if (device?.isComplete) device.start(reason => line.close(reason))
      },
      closed(reason) {
        device?.stop()
        resolve(reason)
      }
    })
    send({ kind: 'token', token })
  })
}

class DeviceProcess {
  readonly #network: Extract<ToWorker, { readonly kind: 'network' }>
  readonly #own: OwnDevice
  readonly #events: DeviceEvents
  readonly #send: (message: ToPeer, bytes?: readonly Uint8Array[]) => void
  readonly #frozen: (Float32Array | undefined)[] = []
  readonly #blocks: readonly Float32Array[]
  readonly #gradients: readonly Float32Array[]
  readonly #signals: SharedSignals
  readonly #cells = new Int32Array(new SharedArrayBuffer(4 * cellCount(1)))
  readonly #encoder: GradientEncoder | undefined
  readonly #mail: MailCarrier
  #missing: number
  #thread: Worker | undefined
  #port: MessagePort | undefined
  #result: WorkerMessage | undefined

  constructor(
    network: Extract<ToWorker, { readonly kind: 'network' }>,
    own: OwnDevice,
    events: DeviceEvents,
    send: (message: ToPeer, bytes?: readonly Uint8Array[]) => void,
    owner: BlockOwner | undefined
  ) {
    this.#network = network
    this.#own = own
    this.#events = events
    this.#send = send
    this.#missing = network.frozen.length
    const memoryFor = (length: number) => new Float32Array(new SharedArrayBuffer(4 * length))
    this.#blocks = network.lengths.map((length, block) => owner?.weightsOf(block) ?? memoryFor(length))
    this.#gradients = allocateGradients(this.#blocks)
    this.#signals = new SharedSignals(1, this.#blocks.length)
    this.#cells[ABORTED] = -1
    this.#mail = new MailCarrier(this.#cells, send)
    this.#encoder = network.coded && new GradientEncoder(network.coded)
  }

  /** Whether the thread can start: all frozen weights have arrived, and it has not started. */
  get isComplete(): boolean {
    return this.#missing === 0 && this.#thread === undefined
  }

  receive(message: ToWorker, bytes: Uint8Array): void {
    if (message.kind === 'frozen') {
      const block = new Float32Array(new SharedArrayBuffer(bytes.length))
      bytesOf(block).set(bytes)
      this.#frozen[message.layer] = block
      this.#missing--
    } else if (message.kind === 'task') this.#execute(message, bytes)
    else if (message.kind === 'weights') {
      bytesOf(this.#blocks[message.block]).set(bytes)
      this.#signals.arrive(message.block)
    } else if (message.kind === 'stored') {
      Atomics.store(this.#cells, REDUCED, message.count)
      Atomics.notify(this.#cells, REDUCED)
    } else if (message.kind === 'mail') this.#mail.deliver(message, bytes)
    else if (message.kind === 'abort') {
      Atomics.store(this.#cells, ABORTED, message.attempt)
      wakeStages(this.#cells)
    }
  }

  /** @param onFailed called if the device cannot be opened */
  start(onFailed: (reason: string) => void): void {
    const { network, executorOptions } = this.#network
    const { port1, port2 } = new MessageChannel()
    const { backend, deviceMemory = executorOptions.deviceMemory } = this.#own
    const workerData: WorkerInit = {
      network,
      backend,
      executorOptions: { ...executorOptions, deviceMemory, frozen: this.#frozen },
      weights: { blocks: this.#blocks, signals: { shared: this.#signals.shared, threads: 1 } },
      cells: this.#cells.buffer as SharedArrayBuffer,
      gradients: this.#gradients,
      worker: SELF,
      port: port2
    }
    const thread = new Worker(new URL('../workers/worker-thread.js', import.meta.url), {
      workerData,
      transferList: [port2]
    })
    this.#thread = thread
    this.#port = port1
    port1.on('message', (message: WorkerMessage) => {
      if (message.kind === 'gradients') {
        const { gradients } = message
        this.#send({ kind: 'gradients', lengths: gradients.map(({ length }) => length) }, gradients.map(bytesOf))
        return
      }
      this.#result = message
      Atomics.add(this.#cells, messagesCell(SELF), 1)
      Atomics.notify(this.#cells, messagesCell(SELF))
    })
    thread.on('message', (device: string) => {
      this.#events.ready(device)
      this.#send({ kind: 'ready', device })
    })
    thread.on('error', error => onFailed(error.message))
  }

  stop(): void {
    this.#port?.close()
    this.#mail.close()
    void this.#thread?.terminate()
  }

  #execute(
    { kind: _, blocks, size, width, isWeighted, isNewPlace, stage, ...task }: Extract<ToWorker, { kind: 'task' }>,
    bytes: Uint8Array
  ) {
    for (const block of blocks) this.#signals.expect(block)
    Atomics.store(this.#cells, REDUCED, 0)
    Atomics.store(this.#cells, gradientsCell(SELF), 0)
    this.#result = undefined
    const ports = isNewPlace ? this.#connect() : undefined
    const rows = rowsFrom(bytes, { size, width, isWeighted })
    const sent: WorkerTask = { ...task, rows, stage: stage && { ...stage, ports } }
    this.#port?.postMessage(sent, ports ? [ports.above, ports.below] : [])
    Atomics.add(this.#cells, tasksCell(SELF), 1)
    Atomics.notify(this.#cells, tasksCell(SELF))
    void this.#report()
  }

  /** Connects the line with the stage. @returns the ports of its thread */
  #connect(): StagePorts {
    const [above, below] = [new MessageChannel(), new MessageChannel()]
    this.#mail.connect({ above: above.port1, below: below.port1 })
    return { above: above.port2, below: below.port2 }
  }

  /** Sends gradients as they appear, and then the result. */
  async #report(): Promise<void> {
    for (let sent = 0; ; ) {
      const seen = Atomics.load(this.#cells, messagesCell(SELF))
      for (; sent < Atomics.load(this.#cells, gradientsCell(SELF)); sent++) {
        const block = Atomics.load(this.#cells, gradientBlockCell(SELF, sent))
        const gradient = this.#gradients[sent % RING_SIZE].subarray(0, this.#blocks[block].length)
        const coded = this.#encoder?.encode(block, gradient)
        this.#send({ kind: 'gradient', block }, [coded ? bytesOf(coded) : copyOf(gradient)])
      }
      if (this.#result !== undefined) {
        this.#events.executed()
        return this.#send({ kind: 'result', result: this.#result })
      }
      const wait = Atomics.waitAsync(this.#cells, messagesCell(SELF), seen)
      if (wait.async) await wait.value
    }
  }
}
