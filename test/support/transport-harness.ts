/** The simulator's transport between ten nodes in virtual time, without a run. */
import { EventQueue } from '../../sim/engine/queue.js'
import { Random } from '../../sim/engine/random.js'
import { Population } from '../../sim/faults/schedule.js'
import { parseScenario } from '../../sim/index.js'
import { Transport, type TransportHost } from '../../sim/network/transport.js'
import type { Message } from '../../sim/wiring/wiring.js'

export class TransportHarness implements TransportHost {
  now = 0
  onMessage: (message: Message) => void = () => undefined
  /** Contents and arrival times of the delivered messages. */
  readonly arrived: { readonly content: unknown; readonly time: number }[] = []
  readonly population = new Population(10, [])
  readonly transport: Transport
  readonly #queue = new EventQueue()

  constructor(values: object, seed = 1) {
    this.transport = new Transport(
      parseScenario({ nodes: 10, ...values }, 'test'),
      new Random(seed),
      this.population,
      this
    )
  }

  get order(): unknown[] {
    return this.arrived.map(({ content }) => content)
  }

  schedule(time: number, slot: number): void {
    this.#queue.push(time, 0, slot, 0)
  }

  deliver(message: Message): void {
    this.arrived.push({ content: message.content, time: this.now })
    this.onMessage(message)
  }

  send(content: unknown, { from = 0, to = 1, bytes = 1, channel }: Partial<Message> & { bytes?: number } = {}): void {
    this.transport.send({ from, to, content, isOverlay: false, lifetime: 0, channel }, bytes)
  }

  run(until = Number.POSITIVE_INFINITY): void {
    const event = { time: 0, kind: 0, a: 0, b: 0 }
    while (this.#queue.nextTime <= until && this.#queue.pop(event)) {
      this.now = event.time
      this.transport.arrive(event.a)
    }
    if (Number.isFinite(until)) this.now = until
  }
}
