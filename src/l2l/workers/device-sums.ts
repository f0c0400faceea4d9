/**
 * The gradients of several devices, summed by the threads of the parameter server ("parallel reduce" of L2L-p: Pudipeddi et al.). The
 * executor hands its gradient of a layer over and continues. A server thread waits for the gradients of the other devices, adds them in
 * device order, and updates the layer.
 */
import { addToBlock, type GradientSums, WorkerFailedError } from '../executor/types.js'
import {
  ABORTED,
  cellCount,
  type DeviceMemory,
  gradientsCell,
  LOOK_MS,
  MEMBERS,
  messagesCell,
  REDUCED,
  RING_SIZE,
  STEP,
  TIMEOUT_MS
} from './worker-handle.js'

/** Number of a gradient that is of one device only. */
export const ALONE = -1

/** @param devices at most 64 @param ringOf allocates a ring */
export function deviceMemory(devices: number, ringOf: () => readonly Float32Array[]): DeviceMemory {
  const cells = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * cellCount(devices - 1))
  return { cells, rings: Array.from({ length: devices - 1 }, ringOf) }
}

/** What the executor's end needs of the server. */
interface ServerThreads {
  /** See `SharedSignals.beginStep`. */
  beginStep(): void
  /** Waits until no gradient is left. */
  settle(): void
}

/** The executor's end. */
export class DeviceSums implements GradientSums {
  waitedMs = 0
  readonly #cells: Int32Array
  readonly #server: ServerThreads
  #check: (() => void) | undefined
  #next = ALONE

  constructor({ cells }: DeviceMemory, server: ServerThreads) {
    this.#cells = new Int32Array(cells)
    this.#server = server
  }

  begin(members: readonly number[], attempt: number, check: () => void): void {
    const bits = members.reduce((mask, member) => mask | (1n << BigInt(member)), 0n)
    for (const half of [0, 1])
      Atomics.store(this.#cells, MEMBERS + half, Number(BigInt.asIntN(32, bits >> BigInt(32 * half))))
    Atomics.store(this.#cells, STEP, attempt)
    this.#server.beginStep()
    this.#check = check
    this.#next = 0
  }

  /** The number of the executor's next gradient. */
  next(): number {
    return this.#next === ALONE ? ALONE : this.#next++
  }

  /**
   * Calls `wait`, which waits for server threads and calls its argument now and then.
   * @throws errors of `check`; WorkerFailedError after TIMEOUT_MS
   */
  during(wait: (look: () => void) => void): void {
    const start = performance.now()
    wait(() => {
      if (this.#next === ALONE) return
      this.#check?.()
      if (performance.now() - start > TIMEOUT_MS)
        throw new WorkerFailedError(`no gradient of another device for ${TIMEOUT_MS / 1000} s`)
    })
    if (this.#next !== ALONE) this.waitedMs += performance.now() - start
  }

  finish(): void {
    this.during(look => {
      for (;;) {
        const seen = Atomics.load(this.#cells, REDUCED)
        if (seen >= this.#next) break
        Atomics.wait(this.#cells, REDUCED, seen, LOOK_MS)
        look()
      }
    })
    this.#end()
  }

  abort(): void {
    this.#end()
    this.#server.settle()
  }

  #end(): void {
    this.#check = undefined
    this.#next = ALONE
  }
}

/**
 * A server thread: adds the gradients of the other devices to that of the executor, when they have arrived.
 * @param number of the gradient in its step
 * @returns false if the step was aborted
 */
export function addDevices({ cells: shared, rings }: DeviceMemory, number: number, gradient: Float32Array): boolean {
  const cells = new Int32Array(shared)
  const isAborted = () => Atomics.load(cells, ABORTED) === Atomics.load(cells, STEP)
  const members = rings.flatMap((_, worker) =>
    (Atomics.load(cells, MEMBERS + (worker >>> 5)) >>> (worker & 31)) & 1 ? [worker] : []
  )
  for (const worker of members) {
    for (;;) {
      const seen = Atomics.load(cells, messagesCell(worker))
      if (isAborted()) return false
      if (Atomics.load(cells, gradientsCell(worker)) > number) break
      Atomics.wait(cells, messagesCell(worker), seen)
    }
  }
  for (const worker of members) addToBlock(gradient, rings[worker][number % RING_SIZE].subarray(0, gradient.length))
  // Several threads sum in parallel, and rings have room in the order of the gradients.
  for (;;) {
    const reduced = Atomics.load(cells, REDUCED)
    if (isAborted()) return false
    if (reduced === number) break
    Atomics.wait(cells, REDUCED, reduced)
  }
  Atomics.store(cells, REDUCED, number + 1)
  Atomics.notify(cells, REDUCED)
  return true
}
