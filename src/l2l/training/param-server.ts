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
import { blockIndices, layoutOf } from '../../nn/blocks.js'
import type { Model } from '../../nn/types.js'
import type { SharedMemory } from '../../numeric/wasm-memory.js'
import { fillBlock, type ParameterStore } from '../executor/types.js'
import { LayerCache, type LayerCacheOptions, leastMemory } from '../store/layer-cache.js'
import { FileLayout, storedBlocks } from '../store/layer-file.js'
import type { SharedWeights } from '../workers/worker-handle.js'
import {
  type BlockStorage,
  enterServerMemory,
  GradientSlots,
  leaveServerMemory,
  MemoryBlocks,
  ServerMemory,
  stepBlock
} from './block-memory.js'
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
  /** Whether other threads read the weights. @default whether there are server threads */
  readonly isShared?: boolean
  /** Keeps the blocks in a layer file. @default in memory */
  readonly disk?: DiskOptions
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
  /** Milliseconds that the executor has waited for updates. */
  #waitedMs = 0
  readonly #layout: Layout
  readonly #blockIndices: readonly (number | undefined)[]
  /** The rule of each block. */
  readonly #rules: readonly UpdateRule[]
  readonly #averaging: WeightedAveraging
  readonly #statePositions: readonly (readonly number[])[]
  readonly #storage: BlockStorage
  /** The storage, if it is a layer file. */
  readonly #cache: LayerCache | undefined
  readonly #slots: GradientSlots
  /** Memory of the kernels. */
  readonly #memory: SharedMemory | undefined
  readonly #signals: SharedSignals
  readonly #threads: readonly Worker[]
  #count = 0
  #updates = 0

  constructor({ model, initial, rule, averaging, threads, isShared = threads > 0, disk }: ParamServerOptions) {
    this.#layout = layoutOf(model)
    this.#blockIndices = blockIndices(model)
    this.#rules = this.#layout.blocks.map(block => createRule(ruleOfLayer(rule, block), { blocks: [block] }))
    const whole = createRule(rule, this.#layout)
    this.#averaging = createAveraging(averaging)
    this.reusesMemory = disk !== undefined
    this.averages = {
      reusesMemory: this.reusesMemory,
      weights: layer => this.#storage.average(this.#settled(layer)),
      pushGradients: () => {
        throw new Error('gradients at the average are not supported')
      },
      skip: () => undefined
    }
    this.#statePositions = stateBlockIndices(whole, this.#layout)
    const lengths = this.#layout.blocks.map(({ length }) => length)
    const hasAverage = averaging.name !== 'none'
    const arrays = arraysOf(this.#layout, whole, averaging)
    // With a layer file, which has memory of its own, as few slots as possible.
    const slotBytes = disk === undefined ? undefined : 0
    const inMemory = disk === undefined ? arrays.flat() : []
    const memory = new ServerMemory({
      bytes: GradientSlots.bytes(lengths, threads, slotBytes) + inMemory.reduce((sum, length) => sum + 4 * length, 0),
      arrays: lengths.length + threads + inMemory.length,
      threads: Math.max(1, threads),
      isShared: isShared || threads > 0
    })
    const allocate = (length: number) => memory.allocate(length)
    this.#memory = memory.shared
    if (threads === 0) enterServerMemory(this.#memory, 0)
    this.#slots = new GradientSlots(lengths, threads, allocate, slotBytes)
    this.#signals = new SharedSignals(Math.max(1, threads), lengths.length)
    if (disk === undefined) {
      const blocks = arrays.map(([length, ...rest]) => {
        const parameters = allocate(length)
        const [average, ...state] = [...(hasAverage ? [] : [parameters]), ...rest.map(allocate)]
        return { parameters, average, state }
      })
      this.#storage = new MemoryBlocks(blocks)
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
        averaging
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
    const threads = this.#threads.length
    return { blocks, signals: threads === 0 ? undefined : { shared: this.#signals.shared, threads } }
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
    this.#step(layer, gradient => gradient.fill(0))
  }

  #step(layer: number, fill: (gradient: Float32Array) => unknown): void {
    const block = this.#settled(layer)
    const slot = this.#slots.acquire(block, before => this.#settle(before))
    const memory = this.#storage.update(block)
    const gradient = this.#slots.memory[slot].subarray(0, memory.parameters.length)
    fill(gradient)
    const count = this.#count
    const updates = this.#updates
    if (this.#threads.length > 0) this.#signals.post(block, { slot, count, updates })
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
    for (const block of this.#rules.keys()) this.#settle(block)
    if (this.#cache !== undefined) {
      this.#cache.flush()
      return storedBlocks(this.#cache.reader(), this.#cache.hasAverage, this.#statePositions)
    }
    const all = (this.#storage as MemoryBlocks).blocks
    const state: Float32Array[] = []
    for (const [k, positions] of this.#statePositions.entries()) {
      for (const [i, position] of positions.entries()) state[position] = all[k].state[i]
    }
    return { parameters: all.map(block => block.parameters), average: all.map(block => block.average), state }
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
    if (!this.#signals.hasFailed) for (const block of this.#rules.keys()) this.#settle(block)
    this.#storage.close()
    leaveServerMemory(this.#memory)
    if (this.#threads.length > 0) this.#signals.stop()
  }

  /** The block of a layer, after its update. */
  #settled(layer: number): number {
    const block = this.#blockIndices[layer] as number
    this.#settle(block)
    return block
  }

  /** Waits until the server threads have finished updating the block. */
  #settle(block: number): void {
    if (this.#threads.length === 0) return
    const start = performance.now()
    this.#signals.wait(block)
    this.#waitedMs += performance.now() - start
    if (this.#signals.hasFailed) throw new Error('a parameter server thread failed; see the error above')
  }
}
