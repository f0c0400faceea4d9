/**
 * The trainer's end of the hosts of a partitioned network. It runs in a thread with the lines to them, and carries out the commands of
 * the executor's thread, which waits in shared memory.
 */
import type { MessagePort } from 'node:worker_threads'
import type { HostCommand, HostsInit } from '../training/partition.js'
import { SharedSignals } from '../training/shared-signals.js'
import { bytesOf, copyOf, type DeviceLine, type ToPeer, type ToWorker } from './messages.js'

type Copy = Extract<HostCommand, { readonly buffer: number }>

export class BlockHosts {
  readonly #lines: readonly DeviceLine[]
  readonly #init: HostsInit
  readonly #port: MessagePort
  readonly #updates: SharedSignals
  readonly #copies: SharedSignals
  /** Copies that each host has not answered yet, in order. */
  readonly #pending: readonly Copy[][]
  /** Handlers of messages about tasks, of hosts that lend their devices. */
  readonly #devices: (Parameters<DeviceLine['receive']>[0] | undefined)[] = []
  #isOpen = true

  /**
   * Tells each host which blocks it holds.
   * @param lines to the hosts 1, 2, …
   * @param port for commands; the reason of a failure is sent to it
   */
  constructor(lines: readonly DeviceLine[], init: HostsInit, port: MessagePort) {
    this.#lines = lines
    this.#init = init
    this.#port = port
    const { updates, copies, buffers, owners, layout, lengths, rule, averaging } = init
    this.#updates = new SharedSignals(updates.threads, owners.length, updates.shared)
    this.#copies = new SharedSignals(1, buffers.length, copies)
    this.#pending = lines.map(() => [])
    const returnsWeights = init.weights !== undefined
    for (const [k, line] of lines.entries()) {
      const blocks = owners.flatMap((owner, block) => (owner === k + 1 ? [block] : []))
      line.receive({
        message: (message, bytes) => this.#receive(k, message, bytes),
        closed: reason => {
          this.#devices[k]?.closed(reason)
          this.#fail(reason)
        }
      })
      this.#send(k + 1, { kind: 'hold', blocks, layout, lengths, rule, averaging, returnsWeights })
    }
    port.on('message', (command: HostCommand) => this.#run(command))
    port.on('close', () => this.#end())
  }

  /** The line to the device of a host, which ends without that of its blocks. @param host from 1 */
  deviceLine(host: number): DeviceLine {
    const k = host - 1
    return {
      send: (message, bytes) => this.#lines[k].send(message, bytes),
      receive: handler => {
        this.#devices[k] = handler
      },
      close: reason => {
        const handler = this.#devices[k]
        this.#devices[k] = undefined
        handler?.closed(reason)
      }
    }
  }

  #send(host: number, message: ToWorker, bytes?: readonly Uint8Array[]): void {
    this.#lines[host - 1].send(message, bytes)
  }

  #run(command: HostCommand): void {
    const { owners, gradients, layout, lengths, buffers } = this.#init
    if (command.kind === 'end') this.#end()
    else if (command.kind === 'step') {
      const { slot, ...step } = command
      const gradient = gradients[slot].subarray(0, layout.blocks[command.block].length)
      this.#send(owners[command.block], step, [copyOf(gradient)])
    } else {
      const { kind, block, array, buffer } = command
      const numbers = buffers[buffer].subarray(0, lengths[block][array])
      this.#pending[owners[block] - 1].push(command)
      this.#send(owners[block], { kind, block, array }, kind === 'write' ? [copyOf(numbers)] : [])
    }
  }

  #receive(k: number, received: Record<string, unknown>, bytes: Uint8Array): void {
    const message = received as ToPeer
    const copy = message.kind === 'copied' ? this.#pending[k].shift() : undefined
    if (message.kind === 'stepped' && this.#init.owners[message.block] === k + 1) {
      const { weights } = this.#init
      if (weights) this.#store(k, bytes, weights[message.block])
      if (message.isDropped) this.#updates.countDropped()
      this.#updates.arrive(message.block)
    } else if (copy !== undefined) {
      const { kind, block, array, buffer } = copy
      const { buffers, lengths } = this.#init
      if (kind === 'read') this.#store(k, bytes, buffers[buffer].subarray(0, lengths[block][array]))
      this.#copies.arrive(buffer)
    } else if (message.kind === 'stepped' || message.kind === 'copied') {
      this.#lines[k].close('it sent an unknown message')
    } else this.#devices[k]?.message(received, bytes)
  }

  #store(k: number, bytes: Uint8Array, into: Float32Array): void {
    if (bytes.length === into.byteLength) bytesOf(into).set(bytes)
    else this.#lines[k].close('its array has another length')
  }

  #fail(reason: string): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#port.postMessage(reason)
    const { owners, buffers } = this.#init
    this.#updates.fail(owners.flatMap((owner, block) => (owner === 0 ? [] : [block])))
    this.#copies.fail(buffers.keys())
    for (const line of this.#lines) line.close('another host is gone')
  }

  #end(): void {
    this.#isOpen = false
    for (const line of this.#lines) line.close('the training has ended')
  }
}
