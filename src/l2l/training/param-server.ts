/**
 * The eager parameter server (Pudipeddi et al.): weights, averages and optimizer state in host memory. A layer is updated
 * as soon as its gradient is pushed: by server threads while the executor continues with the layers below, or
 * synchronously if there are none. Updating in place is safe, because a step reads a layer for the last time before it
 * pushes its gradient.
 */
import { Worker } from 'node:worker_threads'
import {
  type AveragingSpec,
  type Blocks,
  createAveraging,
  createRule,
  type Layout,
  type RuleSpec,
  ruleOfLayer,
  stateBlockIndices,
  type Trained,
  type UpdateRule,
  type WeightedAveraging
} from '../../learning/index.js'
import { blockIndices, layoutOf, lazyBlocks } from '../../nn/blocks.js'
import type { Model } from '../../nn/types.js'
import type { SharedMemory } from '../../numeric/wasm-memory.js'
import { fillBlock, type ParameterStore } from '../executor/types.js'
import { LayerCache, type LayerCacheOptions, leastMemory } from '../store/layer-cache.js'
import { FileLayout, storedBlocks } from '../store/layer-file.js'
import { ALONE, DeviceSums, deviceMemory } from '../workers/device-sums.js'
import { allocateGradients, type DeviceMemory, type SharedWeights } from '../workers/worker-handle.js'
import {
  type BlockStorage,
  enterServerMemory,
  GradientSlots,
  leaveServerMemory,
  MemoryBlocks,
  ServerMemory,
  stepBlock
} from './block-memory.js'
import { bufferLengths, type Hosts, ownersOf, PartitionedBlocks, type ZeroLevel } from './partition.js'
import type { ServerThreadData } from './server-thread.js'
import { SharedSignals } from './shared-signals.js'

export interface ParamServerOptions {
  readonly model: Model
  /** Initial weights of each block, copied one at a time. */
  readonly initial: Iterable<Float32Array>
  /** Must be blockwise. */
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  /** Number of server threads; 0 to update in the executor's thread. */
  readonly threads: number
  /** Devices that read the weights, and whose gradients the server threads sum, if there are any. @default 1 */
  readonly devices?: number
  /** Keeps the blocks in a layer file. @default in memory */
  readonly disk?: DiskOptions
  /** The blocks are divided among these hosts. @default all are in this process */
  readonly hosts?: Hosts
}

/** A parameter server whose blocks are in a layer file. */
export interface DiskOptions extends Pick<LayerCacheOptions, 'folder' | 'commit' | 'isDirect'> {
  /** Bytes of blocks and gradients in memory. */
  readonly memory: number
}

/** Bytes that a model needs whose blocks are in a layer file. */
export interface DiskNeeds {
  /** Least memory of blocks and gradients. */
  readonly least: number
  /** Memory with which all blocks are in memory. */
  readonly most: number
  /** Bytes of the layer file. */
  readonly file: number
}

/** The bytes of a layer file, and of the memory beside it. */
export function diskNeeds({ model, rule, averaging, threads }: Omit<ParamServerOptions, 'initial'>): DiskNeeds {
  const layout = layoutOf(model)
  const lengths = arraysOf(layout, createRule(rule, layout), averaging)
  const { blockBytes, bytes: file } = new FileLayout(lengths)
  const slots = GradientSlots.bytes(
    layout.blocks.map(({ length }) => length),
    threads,
    0
  )
  const all = blockBytes.reduce((sum, bytes) => sum + bytes, 0)
  return { least: leastMemory(lengths) + slots, most: all + slots, file }
}

/** Gradients on their way to other hosts, at most, without the one that is filled. */
const MAX_SENT = 3

/**
 * Bytes of the parameter server on the host with the most of them, which is that of the trainer.
 * @param level 0: all is on one host
 */
export function hostBytes(
  { model, rule, averaging, threads }: Omit<ParamServerOptions, 'initial' | 'hosts'>,
  level: ZeroLevel | 0,
  hosts: number
): number {
  const layout = layoutOf(model)
  const { arrays, owners, lengths, here, updating, slotBytes } = placesOf(
    layout,
    createRule(rule, layout),
    averaging,
    threads,
    {
      level,
      count: level === 0 ? 1 : hosts
    }
  )
  const buffers = level === 0 ? [] : bufferLengths({ owners, lengths: arrays, averaging }, level)
  return GradientSlots.bytes(lengths, updating, slotBytes) + 4 * sum([...here.flat(), ...buffers])
}

/** What is on the trainer's host. */
function placesOf(
  layout: Layout,
  rule: UpdateRule,
  averaging: AveragingSpec,
  threads: number,
  { level, count }: { readonly level: ZeroLevel | 0; readonly count: number }
) {
  const arrays = arraysOf(layout, rule, averaging)
  const owners = ownersOf(arrays.map(sum), count)
  const here = arrays.map((block, k) => (owners[k] === 0 ? block : block.slice(0, level === 3 ? 0 : 1)))
  const lengths = layout.blocks.map(({ length }) => length)
  const updating = threads + Math.min(count - 1, MAX_SENT)
  // From level 2 on, gradients are only in transit.
  return { arrays, owners, here, lengths, updating, slotBytes: level < 2 ? undefined : 0 }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Numbers of the arrays of each block: weights, average if there is one, state. */
function arraysOf(layout: Layout, rule: UpdateRule, averaging: AveragingSpec): readonly (readonly number[])[] {
  const state = rule.stateLayout(layout).blocks
  const averages = averaging.name === 'none' ? 0 : 1
  return stateBlockIndices(rule, layout).map((positions, k) => {
    const { length } = layout.blocks[k]
    return [length, ...Array(averages).fill(length), ...positions.map(position => state[position].length)]
  })
}

export class ParamServer implements ParameterStore {
  readonly reusesMemory: boolean
  /** A store that returns running averages instead of weights. */
  readonly averages: ParameterStore
  readonly sums: DeviceSums | undefined
  readonly #devices: DeviceMemory | undefined
  /** Milliseconds that the executor has waited for updates. */
  #waitedMs = 0
  readonly #layout: Layout
  readonly #blockIndices: readonly (number | undefined)[]
  /** The rule of each block. */
  readonly #rules: readonly UpdateRule[]
  readonly #averaging: WeightedAveraging
  readonly #hasAverage: boolean
  readonly #statePositions: readonly (readonly number[])[]
  readonly #storage: BlockStorage
  /** The storage, if it is a layer file. */
  readonly #cache: LayerCache | undefined
  /** The storage, if it is divided among hosts. */
  readonly #partition: PartitionedBlocks | undefined
  readonly #slots: GradientSlots
  /** Memory of the kernels. */
  readonly #memory: SharedMemory | undefined
  readonly #signals: SharedSignals
  readonly #threads: readonly Worker[]
  #count = 0
  #updates = 0

  constructor({ model, initial, rule, averaging, threads, devices = 1, disk, hosts }: ParamServerOptions) {
    this.#layout = layoutOf(model)
    this.#blockIndices = blockIndices(model)
    this.#rules = this.#layout.blocks.map(block => createRule(ruleOfLayer(rule, block), { blocks: [block] }))
    const whole = createRule(rule, this.#layout)
    this.#averaging = createAveraging(averaging)
    this.reusesMemory = disk !== undefined || hosts?.level === 3
    this.averages = {
      reusesMemory: this.reusesMemory,
      weights: layer => this.#storage.average(this.#settled(layer)),
      pushGradients: () => {
        throw new Error('gradients at the average are not supported')
      },
      skip: () => undefined
    }
    this.#statePositions = stateBlockIndices(whole, this.#layout)
    const hasAverage = averaging.name !== 'none'
    this.#hasAverage = hasAverage
    const partition = hosts ?? { level: 0, count: 1 }
    const places = placesOf(this.#layout, whole, averaging, threads, partition)
    const { arrays, owners, here, lengths, updating } = places
    // With a layer file, which has memory of its own, as few slots as possible.
    const slotBytes = disk === undefined ? places.slotBytes : 0
    const inMemory = disk === undefined ? here.flat() : []
    const memory = new ServerMemory({
      bytes: GradientSlots.bytes(lengths, updating, slotBytes) + 4 * sum(inMemory),
      arrays: lengths.length + updating + inMemory.length,
      threads: Math.max(1, threads),
      isShared: devices > 1 || updating > 0
    })
    const allocate = (length: number) => memory.allocate(length)
    this.#memory = memory.shared
    if (threads === 0) enterServerMemory(this.#memory, 0)
    this.#slots = new GradientSlots(lengths, updating, allocate, slotBytes)
    this.#signals = new SharedSignals(Math.max(1, threads), lengths.length)
    if (disk === undefined) {
      const blocks = here.map(([length = 0, ...rest], k) => {
        const parameters = allocate(length)
        const isPlain = !hasAverage || owners[k] !== 0
        const [average, ...state] = [...(isPlain ? [parameters] : []), ...rest.map(allocate)]
        return { parameters, average, state }
      })
      const signals = { shared: this.#signals.shared, threads: Math.max(1, threads) }
      const init = { layout: this.#layout, rule, averaging, owners, lengths: arrays, updates: signals }
      this.#partition = hosts && new PartitionedBlocks({ ...init, blocks, hosts, gradients: this.#slots.memory })
      this.#storage = this.#partition ?? new MemoryBlocks(blocks)
    } else {
      const { memory, ...file } = disk
      const signals = threads > 0 ? { shared: this.#signals.shared, threads } : undefined
      const blockMemory = memory - this.#slotBytes
      this.#cache = new LayerCache({ ...file, lengths: arrays, hasAverage, memory: blockMemory, signals })
      this.#storage = this.#cache
    }
    if (disk?.commit === undefined) {
      let block = 0
      for (const weights of initial) {
        this.#storage.fill(block++, ({ parameters, average, state }) => {
          parameters.set(weights)
          average.set(weights)
          for (const numbers of state) numbers.fill(0)
        })
      }
    }
    // A gradient for another host is summed before it is sent.
    if (devices > 1 && threads > 0 && hosts === undefined) {
      this.#devices = deviceMemory(devices, () => allocateGradients(this.#layout.blocks))
      this.sums = new DeviceSums(this.#devices, {
        beginStep: () => this.#signals.beginStep(),
        settle: () => this.settle()
      })
    }
    this.#threads = Array.from({ length: threads }, (_, thread) => {
      const data: ServerThreadData = {
        thread,
        threads,
        signals: this.#signals.shared,
        blocks: this.#cache?.places.data ?? (this.#storage as MemoryBlocks).blocks,
        gradients: this.#slots.memory,
        memory: this.#memory,
        rule,
        layout: this.#layout,
        averaging,
        elsewhere: hosts && owners.map(owner => owner !== 0),
        devices: this.#devices
      }
      const worker = new Worker(new URL('./server-thread.js', import.meta.url), { workerData: data })
      worker.unref()
      return worker
    })
  }

  /** Number of layer gradients that were not finite and were dropped. */
  get dropped(): number {
    return this.#signals.dropped
  }

  /** Total bytes of the server's memory. */
  get bytes(): number {
    return this.#storage.bytes + this.#slotBytes
  }

  /** Milliseconds that the executor has waited for the server. */
  get waitedMs(): number {
    return this.#waitedMs + this.#storage.waitedMs
  }

  get #slotBytes(): number {
    return this.#slots.memory.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  /** For workers that read the weights directly, of a server in memory. */
  get shared(): SharedWeights {
    const blocks = (this.#storage as MemoryBlocks).blocks.map(({ parameters }) => parameters)
    const isWritten = this.#threads.length > 0 || this.#partition !== undefined
    const threads = Math.max(1, this.#threads.length)
    const signals = isWritten ? { shared: this.#signals.shared, threads } : undefined
    return { blocks, signals, devices: this.#devices }
  }

  weights(layer: number): Float32Array {
    return this.#storage.parameters(this.#settled(layer))
  }

  /** Starts a minibatch of `count` inputs after `updates` updates. */
  begin(count: number, updates: number): void {
    this.#count = count
    this.#updates = updates
    this.#storage.begin()
  }

  pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    this.#step(layer, gradient => fillBlock(gradient, gradients))
  }

  /** Updates the layer with a zero gradient, because rules such as momentum still change it. */
  skip(layer: number): void {
    this.#step(layer, gradient => gradient.fill(0), true)
  }

  #step(layer: number, fill: (gradient: Float32Array) => unknown, isSkipped = false): void {
    const block = this.#settled(layer)
    const slot = this.#slots.acquire(block, before => this.#settle(before))
    const gradient = this.#slots.memory[slot].subarray(0, this.#layout.blocks[block].length)
    const count = this.#count
    const updates = this.#updates
    if (this.#partition?.isElsewhere(block)) {
      fill(gradient)
      this.#partition.step(block, slot, count, updates)
      return
    }
    const memory = this.#storage.update(block)
    fill(gradient)
    const number = isSkipped ? ALONE : (this.sums?.next() ?? ALONE)
    if (this.#threads.length > 0) this.#signals.post(block, { slot, count, updates, number })
    else if (!stepBlock(memory, gradient, this.#rules[block], this.#averaging, count, updates))
      this.#signals.countDropped()
    this.#storage.updated(block)
  }

  /** Replaces the contents of all blocks, before the first minibatch. */
  restore(from: Pick<Trained, 'parameters' | 'average' | 'state'>): void {
    for (const [k, positions] of this.#statePositions.entries()) {
      this.#storage.fill(k, ({ parameters, average, state }) => {
        parameters.set(from.parameters[k])
        if (average !== parameters) average.set(from.average[k])
        for (const [i, position] of positions.entries()) state[i].set(from.state[position])
      })
    }
  }

  /**
   * All parameters, averages and state after the last update. The arrays are the server's memory, or read when they are
   * accessed.
   */
  collect(): { readonly parameters: Blocks; readonly average: Blocks; readonly state: Blocks } {
    this.settle()
    if (this.#cache !== undefined) {
      this.#cache.flush()
      return storedBlocks(this.#cache.reader(), this.#cache.hasAverage, this.#statePositions)
    }
    if (this.#partition) return this.#collectFrom(this.#partition)
    const all = (this.#storage as MemoryBlocks).blocks
    const state: Float32Array[] = []
    for (const [k, positions] of this.#statePositions.entries()) {
      for (const [i, position] of positions.entries()) state[position] = all[k].state[i]
    }
    return { parameters: all.map(block => block.parameters), average: all.map(block => block.average), state }
  }

  /** Arrays of other hosts are read when they are accessed, until `close`. */
  #collectFrom(partition: PartitionedBlocks): { readonly [array in 'parameters' | 'average' | 'state']: Blocks } {
    const places = this.#statePositions.flatMap((positions, block) =>
      positions.map((position, i): [number, { readonly block: number; readonly i: number }] => [position, { block, i }])
    )
    const byPosition = new Map(places)
    const count = this.#layout.blocks.length
    const average = this.#hasAverage ? 1 : 0
    const state = lazyBlocks(byPosition.size, position => {
      const { block, i } = byPosition.get(position) as { readonly block: number; readonly i: number }
      return partition.array(block, average + 1 + i)
    })
    return {
      parameters: lazyBlocks(count, block => partition.array(block, 0)),
      average: lazyBlocks(count, block => partition.array(block, average)),
      state
    }
  }

  /**
   * Commits what a server with a layer file holds, with the state of the run. Without one, does nothing.
   * @param isLast whether to wait until the commit is durable
   * @throws LayersWriteError, DamagedLayersError, DivergenceError
   */
  commit(content: unknown, isLast = false): void {
    this.#cache?.commit(content)
    if (isLast) this.#cache?.flush()
  }

  close(): void {
    // The thread that writes waits for updates, which end with `stop`.
    if (!this.#signals.hasFailed) this.settle()
    this.#storage.close()
    leaveServerMemory(this.#memory)
    if (this.#threads.length > 0) this.#signals.stop()
  }

  /** Waits until all blocks are updated. @throws HostLostError */
  settle(): void {
    for (const block of this.#rules.keys()) this.#settle(block)
  }

  /** The block of a layer, after its update. */
  #settled(layer: number): number {
    const block = this.#blockIndices[layer] as number
    this.#settle(block)
    return block
  }

  /** Waits until the server threads have finished updating the block. */
  #settle(block: number): void {
    if (this.#threads.length === 0 && this.#partition === undefined) return
    const start = performance.now()
    if (this.sums === undefined) this.#signals.wait(block)
    else this.sums.during(look => this.#signals.wait(block, look))
    this.#waitedMs += performance.now() - start
    this.#partition?.check()
    if (this.#signals.hasFailed) throw new Error('a parameter server thread failed; see the error above')
  }
}
