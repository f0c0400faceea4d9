/**
 * Blocks of a parameter server that are divided among the hosts of a run (Rajbhandari et al., "ZeRO: Memory Optimizations Toward
 * Training Trillion Parameter Models", 2020). Each block has an owner, which holds its average and optimizer state and updates it.
 * The owner's rule is the one that this process would apply, to the same numbers, so that all levels give the same bits.
 */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { CodedError } from '../../base/errors.js'
import type { AveragingSpec, Layout, RuleSpec } from '../../learning/index.js'
import { FLOAT_BYTES } from '../../nn/types.js'
import { type Access, AccessOrder } from '../store/layer-cache.js'
import type { ArrayLengths } from '../store/layer-file.js'
import type { WorkerInit } from '../workers/worker-handle.js'
import { type BlockMemory, MemoryBlocks } from './block-memory.js'
import { SharedSignals } from './shared-signals.js'

/** 1: owners hold averages and optimizer state. 2: gradients are here only until they are sent. 3: weights are only at their owners. */
export const ZERO_LEVELS = [1, 2, 3] as const
export type ZeroLevel = (typeof ZERO_LEVELS)[number]

/** The other hosts of a run, which have joined. */
export interface Hosts {
  readonly level: ZeroLevel
  /** Number of hosts, this process included. */
  readonly count: number
  /** Starts the thread with the lines to them. @returns a port for `HostCommand` messages */
  start(init: HostsInit): MessagePort
  /**
   * The device of a host executes tasks, after `start`.
   * @param host its number, from 1
   * @param init with a port that is transferred
   * @returns its name
   */
  lendDevice(host: number, init: WorkerInit): Promise<string>
}

/** What the thread with the lines to the hosts is started with. All arrays are in memory that threads share. */
export interface HostsInit {
  readonly layout: Layout
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  /** The host of each block; 0 is this process. */
  readonly owners: readonly number[]
  readonly lengths: ArrayLengths
  /** Slots of gradients. */
  readonly gradients: readonly Float32Array[]
  /** Weights that an owner returns after an update, by block; undefined at level 3. */
  readonly weights: readonly Float32Array[] | undefined
  /** Where arrays of other hosts are copied to and from. */
  readonly buffers: readonly Float32Array[]
  /** Signals of updates, by block, of a number of server threads. */
  readonly updates: { readonly shared: SharedArrayBuffer; readonly threads: number }
  /** Signals of buffers. */
  readonly copies: SharedArrayBuffer
}

/** Commands to the thread. An owner executes those for its blocks in order. */
export type HostCommand =
  /** Updates a block by the gradient in a slot. */
  | {
      readonly kind: 'step'
      readonly block: number
      readonly slot: number
      readonly count: number
      readonly updates: number
    }
  /** Copies an array of a block to a buffer, or from it. */
  | { readonly kind: 'read' | 'write'; readonly block: number; readonly array: number; readonly buffer: number }
  | { readonly kind: 'end' }

/** A host is gone, and with it what it held. */
export class HostLostError extends CodedError {
  static override readonly code = 'ERR_HOST_LOST'
  constructor(reason: string) {
    super(`a host is gone with its part of the network (${reason}): start it and this command again`)
  }
}

/**
 * The owner of each block: the largest block first, each by the host with the fewest bytes so far. So no host has more than an equal
 * share and one block.
 * @param bytes of each block
 * @param hosts number of hosts
 * @returns number of the host, from 0, of each block
 */
export function ownersOf(bytes: readonly number[], hosts: number): number[] {
  const loads = Array<number>(hosts).fill(0)
  const owners = bytes.map(() => 0)
  const largestFirst = [...bytes.keys()].sort((a, b) => bytes[b] - bytes[a] || a - b)
  for (const block of largestFirst) {
    const host = loads.indexOf(Math.min(...loads))
    owners[block] = host
    loads[host] += bytes[block]
  }
  return owners
}

/** Buffers for arrays of other hosts: the array in use, two that are read ahead, and one for an access that was not expected. */
const BUFFERS = 4
const AHEAD = 2

/** Lengths of the buffers for arrays of other hosts. */
export function bufferLengths(
  { owners, lengths, averaging }: Pick<HostsInit, 'owners' | 'lengths' | 'averaging'>,
  level: ZeroLevel
): number[] {
  const elsewhere = lengths.filter((_, block) => owners[block] !== 0).flat()
  const longest = elsewhere.reduce((most, length) => Math.max(most, length), 0)
  // Otherwise, steps read none.
  const count = averaging.name !== 'none' || level === 3 ? BUFFERS : 1
  return Array(count).fill(longest)
}

interface Buffered extends Access {
  readonly buffer: number
}

interface PartitionOptions extends Omit<HostsInit, 'weights' | 'buffers' | 'copies'> {
  readonly hosts: Hosts
  /** What is in this process: all arrays of its own blocks, and at levels 1 and 2 the weights of the others. */
  readonly blocks: readonly BlockMemory[]
}

export class PartitionedBlocks extends MemoryBlocks {
  override waitedMs = 0
  readonly #options: PartitionOptions
  readonly #port: MessagePort
  readonly #updates: SharedSignals
  readonly #copies: SharedSignals
  readonly #buffers: readonly Float32Array[]
  readonly #hasAverage: boolean
  readonly #order = new AccessOrder()
  /** What the buffers hold, or will; the one that was used last is the last. */
  #held: readonly Buffered[] = []
  /** Until the first minibatch. */
  #scratch: readonly Float32Array[] | undefined
  /** Why a host is gone. */
  #reason: string | undefined

  constructor(options: PartitionOptions) {
    super(options.blocks)
    const { blocks, hosts, ...init } = options
    this.#options = options
    this.#hasAverage = init.averaging.name !== 'none'
    this.#buffers = bufferLengths(init, hosts.level).map(
      length => new Float32Array(new SharedArrayBuffer(FLOAT_BYTES * length))
    )
    this.#updates = new SharedSignals(init.updates.threads, blocks.length, init.updates.shared)
    this.#copies = new SharedSignals(1, this.#buffers.length)
    this.#port = hosts.start({
      ...init,
      weights: hosts.level === 3 ? undefined : blocks.map(({ parameters }) => parameters),
      buffers: this.#buffers,
      copies: this.#copies.shared
    })
    this.#port.unref()
  }

  override get bytes(): number {
    return super.bytes + this.#buffers.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  /** Whether another host owns a block. */
  isElsewhere(block: number): boolean {
    return this.#options.owners[block] !== 0
  }

  override begin(): void {
    this.#scratch = undefined
    this.#order.begin()
  }

  override parameters(block: number): Float32Array {
    const isRead = this.#options.hosts.level === 3 && this.isElsewhere(block)
    return isRead ? this.#read({ block, use: PARAMETERS }) : super.parameters(block)
  }

  override average(block: number): Float32Array {
    if (!this.#hasAverage) return this.parameters(block)
    return this.isElsewhere(block) ? this.#read({ block, use: AVERAGE }) : super.average(block)
  }

  /** Tells the owner of a block to update it by the gradient in a slot. */
  step(block: number, slot: number, count: number, updates: number): void {
    this.#held = this.#held.filter(held => held.block !== block)
    this.#updates.expect(block)
    this.#post({ kind: 'step', block, slot, count, updates })
  }

  override fill(block: number, write: (memory: BlockMemory) => void): void {
    if (this.isElsewhere(block)) this.#fillElsewhere(block, write)
    else super.fill(block, write)
  }

  #fillElsewhere(block: number, write: (memory: BlockMemory) => void): void {
    const [parameters, ...rest] = this.#scratchFor(block)
    const [average, ...state] = this.#hasAverage ? rest : [parameters, ...rest]
    write({ parameters, average, state })
    this.#held = []
    if (this.#options.hosts.level < 3) super.parameters(block).set(parameters)
    for (const [array, numbers] of [parameters, ...rest].entries()) {
      // State is zero at its owner before it is written.
      if (state.includes(numbers) && numbers.every(value => value === 0)) continue
      this.#copies.wait(0)
      this.#buffers[0].set(numbers)
      this.#copy('write', block, array, 0)
    }
  }

  /** Arrays of a block, in memory that the next call reuses. */
  #scratchFor(block: number): readonly Float32Array[] {
    const { lengths, owners } = this.#options
    const all = lengths.filter((_, k) => owners[k] !== 0)
    const count = Math.max(...all.map(({ length }) => length))
    this.#scratch ??= Array.from({ length: count }, (_, n) => {
      return new Float32Array(Math.max(...all.map(arrays => arrays[n] ?? 0)))
    })
    return lengths[block].map((length, n) => (this.#scratch as readonly Float32Array[])[n].subarray(0, length))
  }

  /** An array of a block that lasts, a copy of other hosts': its weights, its average if there is one, or an array of its state. */
  array(block: number, array: number): Float32Array {
    const { parameters, average, state } = this.blocks[block]
    const isHere = !this.isElsewhere(block) || (array === 0 && this.#options.hosts.level < 3)
    if (isHere) return [parameters, ...(this.#hasAverage ? [average] : []), ...state][array]
    this.#held = []
    this.#wait(this.#copies, 0)
    this.#copy('read', block, array, 0)
    return this.#arrived(0, this.#options.lengths[block][array]).slice()
  }

  /** @throws HostLostError if a host is gone */
  check(): void {
    if (!this.#updates.hasFailed) return
    this.#reason ??= receiveMessageOnPort(this.#port)?.message
    if (this.#reason !== undefined) throw new HostLostError(this.#reason)
  }

  override close(): void {
    this.#post({ kind: 'end' })
    this.#port.close()
  }

  #post(command: HostCommand): void {
    this.#port.postMessage(command)
  }

  #read(access: Access): Float32Array {
    this.#order.note(access)
    const { buffer } = this.#request(access)
    for (const next of this.#order.ahead(AHEAD)) if (this.#updates.isDone(next.block)) this.#request(next)
    return this.#arrived(buffer, this.#options.lengths[access.block][access.use])
  }

  /** Starts to read an array, unless it is in a buffer. */
  #request({ block, use }: Access): Buffered {
    const known = this.#held.find(held => held.block === block && held.use === use)
    const free = [...this.#buffers.keys()].find(buffer => this.#held.every(held => held.buffer !== buffer))
    const buffer = known?.buffer ?? free ?? this.#held[0].buffer
    if (known === undefined) {
      this.#wait(this.#copies, buffer)
      this.#copy('read', block, use, buffer)
    }
    const held = { block, use, buffer }
    this.#held = [...this.#held.filter(other => other.buffer !== buffer), held]
    return held
  }

  #copy(kind: 'read' | 'write', block: number, array: number, buffer: number): void {
    this.#copies.expect(buffer)
    this.#post({ kind, block, array, buffer })
  }

  #arrived(buffer: number, length: number): Float32Array {
    this.#wait(this.#copies, buffer)
    this.check()
    return this.#buffers[buffer].subarray(0, length)
  }

  #wait(signals: SharedSignals, index: number): void {
    const start = performance.now()
    signals.wait(index)
    this.waitedMs += performance.now() - start
  }
}

/** Arrays of a block. */
const PARAMETERS = 0
const AVERAGE = 1
