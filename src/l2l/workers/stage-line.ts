/** A device's lines to its neighbours in a pipeline: activations and gradients are messages, and a shared integer wakes the reader. */
import { receiveMessageOnPort } from 'node:worker_threads'
import * as tf from '#tfjs'
import { AbortedError, type Stage, type StagePlace } from '../executor/pipeline.js'
import type { Operation } from '../executor/pipeline-orders.js'
import { ABORTED, awaitChange, MAIL, type Mail, type StagePorts, wakeStages } from './worker-handle.js'

const keyOf = ({ kind, chunk, microbatch }: Operation) => `${kind}/${chunk}/${microbatch}`

export class StageLine {
  /** Milliseconds that the step has waited for its neighbours. */
  waitedMs = 0
  readonly #arrived = new Map<string, Mail>()

  /** @param hasEnded whether the thread of another device has ended @default unknown */
  constructor(
    private readonly cells: Int32Array,
    private readonly ports: StagePorts,
    private readonly hasEnded?: () => boolean
  ) {}

  /** @param attempt number of the step's attempt; messages of others are dropped */
  stageOf(place: StagePlace, attempt: number): Stage {
    this.waitedMs = 0
    this.#arrived.clear()
    return {
      ...place,
      send: (to, tensor) => {
        const { shape, dtype } = tensor
        const values = tensor.dataSync().slice() as Mail['values']
        tensor.dispose()
        const mail: Mail = { attempt, key: keyOf(to), values, shape, dtype }
        const port = to.kind === 'forward' ? this.ports.above : this.ports.below
        port.postMessage(mail, [values.buffer as ArrayBuffer])
        wakeStages(this.cells)
      },
      receive: operation => {
        const { values, shape, dtype } = this.#await(keyOf(operation), attempt)
        return tf.tensor(values, shape, dtype)
      }
    }
  }

  close(): void {
    this.ports.above.close()
    this.ports.below.close()
  }

  #await(key: string, attempt: number): Mail {
    const start = performance.now()
    for (;;) {
      const seen = Atomics.load(this.cells, MAIL)
      this.#drain(attempt)
      const mail = this.#arrived.get(key)
      if (mail !== undefined) {
        this.#arrived.delete(key)
        this.waitedMs += performance.now() - start
        return mail
      }
      if (Atomics.load(this.cells, ABORTED) === attempt) throw new AbortedError()
      // Another stage has failed, which the pool finds.
      if (!awaitChange(this.cells, MAIL, seen, this.hasEnded)) throw new AbortedError()
    }
  }

  #drain(attempt: number): void {
    for (const port of [this.ports.above, this.ports.below]) {
      for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
        const mail = next.message as Mail
        if (mail.attempt === attempt) this.#arrived.set(mail.key, mail)
      }
    }
  }
}
