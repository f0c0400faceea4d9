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
  stateBlockIndices,
  type Trained,
  type UpdateRule,
  type WeightedAveraging
} from '../../learner/index.js'
import { blockIndices, layoutOf } from '../../nn/blocks.js'
import type { Model } from '../../nn/types.js'
import type { ParameterStore } from '../executor/types.js'
import { fillBlock } from '../parameter-store.js'
import type { SharedWeights } from '../workers/messages.js'
import { type BlockMemory, GradientSlots, stepBlock } from './block-memory.js'
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
}

export class ParamServer implements ParameterStore {
  /** Milliseconds that the executor has waited for the server. */
  waitedMs = 0
  readonly #layout: Layout
  readonly #blockIndices: readonly (number | undefined)[]
  /** The rule of each block. */
  readonly #rules: readonly UpdateRule[]
  readonly #averaging: WeightedAveraging
  readonly #statePositions: readonly (readonly number[])[]
  readonly #blocks: readonly BlockMemory[]
  readonly #slots: GradientSlots
  readonly #signals: SharedSignals
  readonly #threads: readonly Worker[]
  #count = 0
  #updates = 0

  constructor({ model, initial, rule, averaging, threads, isShared = threads > 0 }: ParamServerOptions) {
    this.#layout = layoutOf(model)
    this.#blockIndices = blockIndices(model)
    this.#rules = this.#layout.blocks.map(block => createRule(rule, { blocks: [block] }))
    const whole = createRule(rule, this.#layout)
    this.#averaging = createAveraging(averaging)
    this.#statePositions = stateBlockIndices(whole, this.#layout)
    const stateBlocks = whole.stateLayout(this.#layout).blocks
    const allocate = (length: number) =>
      isShared || threads > 0 ? new Float32Array(new SharedArrayBuffer(4 * length)) : new Float32Array(length)
    const copyOf = (from: Float32Array) => {
      const block = allocate(from.length)
      block.set(from)
      return block
    }
    const blocks: BlockMemory[] = []
    for (const weights of initial) {
      const parameters = copyOf(weights)
      const average = averaging.name === 'none' ? parameters : copyOf(weights)
      const state = this.#statePositions[blocks.length].map(position => allocate(stateBlocks[position].length))
      blocks.push({ parameters, average, state })
    }
    this.#blocks = blocks
    const lengths = this.#layout.blocks.map(({ length }) => length)
    this.#slots = new GradientSlots(lengths, threads, allocate)
    this.#signals = new SharedSignals(Math.max(1, threads), this.#blocks.length)
    this.#threads = Array.from({ length: threads }, (_, thread) => {
      const data: ServerThreadData = {
        thread,
        threads,
        signals: this.#signals.shared,
        blocks: this.#blocks,
        gradients: this.#slots.memory,
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
    const arrays = this.#blocks.flatMap(({ parameters, average, state }) =>
      average === parameters ? [parameters, ...state] : [parameters, average, ...state]
    )
    return [...arrays, ...this.#slots.memory].reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  /** For workers that read the weights directly. */
  get shared(): SharedWeights {
    const blocks = this.#blocks.map(({ parameters }) => parameters)
    const threads = this.#threads.length
    return { blocks, signals: threads === 0 ? undefined : { shared: this.#signals.shared, threads } }
  }

  weights(layer: number): Float32Array {
    return this.#acquire(this.#blockIndices[layer] as number).parameters
  }

  /** A store that returns running averages instead of weights. */
  readonly averages: ParameterStore = {
    weights: layer => this.#acquire(this.#blockIndices[layer] as number).average,
    pushGradients: () => {
      throw new Error('gradients at the average are not supported')
    },
    skip: () => undefined
  }

  /** Starts a minibatch of `count` inputs after `updates` updates. */
  begin(count: number, updates: number): void {
    this.#count = count
    this.#updates = updates
  }

  pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    this.#step(layer, gradient => fillBlock(gradient, gradients))
  }

  /** Updates the layer with a zero gradient, because rules such as momentum still change it. */
  skip(layer: number): void {
    this.#step(layer, gradient => gradient.fill(0))
  }

  #step(layer: number, fill: (gradient: Float32Array) => unknown): void {
    const block = this.#blockIndices[layer] as number
    const memory = this.#acquire(block)
    const slot = this.#slots.acquire(block, before => this.#acquire(before))
    const gradient = this.#slots.memory[slot].subarray(0, memory.parameters.length)
    fill(gradient)
    const count = this.#count
    const updates = this.#updates
    if (this.#threads.length > 0) this.#signals.post(block, { slot, count, updates })
    else if (!stepBlock(memory, gradient, this.#rules[block], this.#averaging, count, updates))
      this.#signals.countDropped()
  }

  /** Replaces the contents of all blocks, before the first minibatch. */
  restore({ parameters, average, state }: Pick<Trained, 'parameters' | 'average' | 'state'>): void {
    for (const [k, block] of this.#blocks.entries()) {
      block.parameters.set(parameters[k])
      if (block.average !== block.parameters) block.average.set(average[k])
      for (const [i, position] of this.#statePositions[k].entries()) block.state[i].set(state[position])
    }
  }

  /** All parameters, averages and state after the last update. The arrays are the server's memory. */
  collect(): { readonly parameters: Blocks; readonly average: Blocks; readonly state: Blocks } {
    const all = this.#blocks.map((_, block) => this.#acquire(block))
    const state: Float32Array[] = []
    for (const [k, positions] of this.#statePositions.entries()) {
      for (const [i, position] of positions.entries()) state[position] = all[k].state[i]
    }
    return { parameters: all.map(block => block.parameters), average: all.map(block => block.average), state }
  }

  close(): void {
    if (this.#threads.length > 0) this.#signals.stop()
  }

  /** The block's memory. Waits until the server threads have finished updating it. */
  #acquire(block: number): BlockMemory {
    if (this.#threads.length > 0) {
      const start = performance.now()
      this.#signals.wait(block)
      this.waitedMs += performance.now() - start
      if (this.#signals.hasFailed) throw new Error('a parameter server thread failed; see the error above')
    }
    return this.#blocks[block]
  }
}
