/** Options of the executor, batches, stashes, and the parameter stores that it reads from and writes to. */

import type { Tensor } from '#tfjs'
import type { DeviceName } from '../../device/types.js'
import { DeviceError } from '../../device/types.js'
import { type Blocks, DivergenceError, type Score } from '../../learning/index.js'
import { blockIndices } from '../../nn/blocks.js'
import type { Model, RowWeights } from '../../nn/types.js'
import { isFiniteBlock } from '../../numeric/numbers.js'
import type { GradientCode } from '../workers/gradient-codes.js'

/**
 * `baseline`: all weights, gradients and activations on the device, one pass over the whole minibatch. `baseline-ag`:
 * one pass per microbatch with gradient accumulation. `l2l`: layer by layer, all microbatches through one layer before
 * the next. `l2l-p`: like `l2l`, with the next layer prefetched and reduction and optimizer in parallel with execution. `tensor`: several
 * devices divide each transformer block: see `LayerSplit`. The others are pipelines of several devices: see `pipelineOrders`. On one device
 * these execute as `baseline-ag`.
 */
export const SCHEDULES = [
  'baseline',
  'baseline-ag',
  'l2l',
  'l2l-p',
  'tensor',
  'gpipe',
  '1f1b',
  'interleaved',
  'zb-h1'
] as const
export type Schedule = (typeof SCHEDULES)[number]

/** The schedules that divide the layers among devices: see `pipelineOrders`. */
export type Pipeline = Extract<Schedule, 'gpipe' | '1f1b' | 'interleaved' | 'zb-h1'>

export function isPipeline(schedule: Schedule | 'auto' | undefined): schedule is Pipeline {
  return schedule !== undefined && schedule !== 'auto' && SCHEDULES.indexOf(schedule) >= SCHEDULES.indexOf('gpipe')
}

/** Whether devices divide the model, not the rows of a minibatch. */
export function dividesModel(schedule: Schedule | 'auto' | undefined): schedule is Pipeline | 'tensor' {
  return schedule === 'tensor' || isPipeline(schedule)
}

/**
 * Whether a device keeps the weights of its layers, and the activations of a microbatch, until the backward pass. Stages of a pipeline with
 * the stash on the host do not.
 */
export function keepsAll(schedule: Schedule, stash: StashLocation = 'device'): boolean {
  return schedule.startsWith('baseline') || (dividesModel(schedule) && !(isPipeline(schedule) && stash === 'host'))
}

/** Where layer outputs are stored until the backward pass. */
export const STASH_LOCATIONS = ['device', 'host'] as const
export type StashLocation = (typeof STASH_LOCATIONS)[number]

/** Where the weights that are trained, their average and the optimizer state are kept. */
export const STORES = ['memory', 'disk'] as const
export type StoreLocation = (typeof STORES)[number]

/** What `l2l` and `l2l-p` do with a layer. */
export interface LayerPlan {
  /** Its activations are recomputed in the backward pass, or saved on the device or in host memory. @default 'recomputed' */
  readonly activations?: 'recomputed' | 'device' | 'host'
  /**
   * Its outputs, and later their gradients, are in the stash, or on the device although the stash is elsewhere, or the backward pass
   * recomputes them from the nearest output below that is kept, those of adjacent layers together. @default 'stash'
   */
  readonly outputs?: 'stash' | 'device' | 'recomputed'
  /** The sweep of recomputation that keeps its recomputed outputs, from 1: see `passesOf`. @default 1 */
  readonly keptIn?: number
  /** Whether its weights stay on the device from the forward to the backward pass. @default false */
  readonly isResident?: boolean
}

export interface ExecutorOptions {
  /** By the index of the layer. @default each layer as by default */
  readonly layers?: readonly LayerPlan[]
  /** @default 'l2l' */
  readonly schedule?: Schedule
  /** Rows per microbatch. Not supported by `baseline`. @default the whole minibatch */
  readonly microbatch?: number
  /**
   * Where layer outputs are stored until the backward pass; off the device, device memory is constant in depth. Stages of a pipeline with
   * the stash on the host load each layer for each operation.
   * @default 'device'
   */
  readonly stash?: StashLocation
  /**
   * Bits, 1 to 8, of numbers that layers save for the backward pass: derivatives of GELU, softmax outputs, and the outputs of norms and
   * activations. Gradients are then approximate.
   * @default they are exact
   */
  readonly bits?: number
  /** Limit of the bytes on the device. @default no limit */
  readonly deviceMemory?: number
  /**
   * Chunks of a pipeline's stages, microbatches of an operation, and the time of each layer, by which the stages are cut.
   * @default one chunk, or two if interleaved; one microbatch; equal times
   */
  readonly pipeline?: { readonly chunks: number; readonly group?: number; readonly layerMs: readonly number[] }
  /** Required for a model with frozen weights. @default none */
  readonly frozen?: FrozenWeights
  /** Factors of the gradients by class. @default 1 */
  readonly classWeights?: readonly number[]
}

/** Frozen weights in host memory, by the index of the layer in the model. */
export type FrozenWeights = readonly (Float32Array | undefined)[]

/** How this machine executes a network. Peers may use different options. */
export interface Execution
  extends Omit<ExecutorOptions, 'schedule' | 'frozen' | 'classWeights' | 'layers' | 'pipeline'> {
  /** `auto`: the first device that works. @default 'auto' */
  readonly backend?: DeviceName | 'auto'
  /** `auto`: the planner chooses the schedule and all options that are not set. @default 'l2l' */
  readonly schedule?: Schedule | 'auto'
  /**
   * Number of devices that share each minibatch, each in its own thread; the other options apply to each of them.
   * @default 1
   */
  readonly workers?: number
  /**
   * How workers of other processes send their gradients: `sign`, or `rank:R` (see `gradient-codes.ts`). Gradients are then approximate.
   * @default they are exact
   */
  readonly gradients?: GradientCode
  /**
   * `disk`: in a layer file, of which `hostMemory` bytes are in memory. For training in one process, on one device, by a rule that steps
   * layers independently.
   * @default 'memory'
   */
  readonly store?: StoreLocation
  /** Bytes of weights, state and gradients in memory with `store: 'disk'`. @default 1 GiB, or the least that the model needs */
  readonly hostMemory?: number
  /** The weights that the network starts from on this machine (`--weights`): a folder or a file. @default none */
  readonly checkpoint?: string
}

/** Execution in a peer that may admit device workers. */
export interface GroupExecution extends Execution {
  /** Whether workers of other processes may join this machine's devices. @default false */
  readonly hasRemoteWorkers?: boolean
}

/**
 * Holds the weights and receives the gradients of a model on the host. Layers are addressed by their index in the
 * model.
 */
export interface ParameterStore {
  /**
   * The layer's block. Its numbers must not change until the layer's gradients were pushed, or the step was aborted. With
   * `reusesMemory`, its memory is reused with the next call.
   */
  weights(layer: number): Float32Array
  /** Whether a layer's memory is reused. @default false */
  readonly reusesMemory?: boolean
  /**
   * Receives the layer's gradients, summed over the minibatch: flat arrays that concatenate to its block, valid during
   * the call.
   */
  pushGradients(layer: number, gradients: readonly Float32Array[]): void
  /** Sums the gradients of several devices itself. @default the pool of devices sums them */
  readonly sums?: GradientSums
  /** The step omits the layer: its gradient is zero. */
  skip(layer: number): void
}

/** Sums of gradients of several devices, by threads of the parameter server: see `DeviceSums`. */
export interface GradientSums {
  /** Milliseconds that the executor has waited for other devices. */
  readonly waitedMs: number
  /**
   * The gradients of a step are summed from now on. Call it before the other devices begin.
   * @param members numbers of the other devices that compute gradients
   * @param check throws the error of a device that has failed
   */
  begin(members: readonly number[], attempt: number, check: () => void): void
  /** Blocks until all gradients are summed. @throws errors of `check`; WorkerFailedError if nothing arrives for long */
  finish(): void
  /** After the step was aborted. Blocks until its gradients are dropped. */
  abort(): void
}

/** A minibatch on the host. */
export interface Batch {
  readonly size: number
  /** Uploads rows [from, to): [to − from, …sample]. */
  inputs(from: number, to: number): Tensor
  /** Tokens before the padding of rows [from, to), each at least 1; if the model's sample has padding. */
  lengths?(from: number, to: number): Int32Array | undefined
  /** Uploads the targets of rows [from, to) in the format of the head. */
  targets(from: number, to: number): Tensor
  /** The weights of rows [from, to); undefined if all are 1. */
  weights?(from: number, to: number): RowWeights | undefined
}

/** Sums over a minibatch. */
export interface StepScore extends Readonly<Score> {
  /** The encoded outcome of each row, if it was asked for and the head has one. */
  readonly rows?: Float64Array
}

/** Storage of tensors, addressed by layer and microbatch. */
export interface Stash {
  /**
   * Stores a tensor and takes ownership of it.
   * @param onDevice whether it stays on the device; for a stash that has both @default false
   */
  put(layer: number, microbatch: number, tensor: Tensor, onDevice?: boolean): void
  /** The stored tensor, which stays in the stash. Pass it to `release` after use. */
  borrow(layer: number, microbatch: number): Tensor
  release(tensor: Tensor): void
  /** Removes a stored tensor. */
  drop(layer: number, microbatch: number): void
  /** Peak bytes in host memory. */
  readonly peakBytes: number
  /** Removes all tensors. The stash can be used again. */
  clear(): void
  /** Removes all tensors and releases all resources. */
  close(): void
}

/** A worker's device failed. The step is lost, and the pool has removed the worker. */
export class WorkerFailedError extends DeviceError {}

/** Adds numbers to the start of a block. */
export function addToBlock(block: Float32Array, numbers: Float32Array): void {
  for (let i = 0; i < numbers.length; i++) block[i] += numbers[i]
}

/**
 * Concatenates the flat gradients of a layer's tensors into a block.
 * @returns how many numbers were written
 */
export function fillBlock(block: Float32Array, gradients: readonly Float32Array[]): number {
  let offset = 0
  for (const gradient of gradients) {
    block.set(gradient, offset)
    offset += gradient.length
  }
  return offset
}

/** Reads weights from blocks and overwrites other blocks with the gradients. */
export class BlockStore implements ParameterStore {
  protected readonly gradients: Blocks
  readonly #parameters: Blocks
  readonly #indices: readonly (number | undefined)[]

  /** @param gradients may be empty for forward passes */
  constructor(model: Model, parameters: Blocks, gradients: Blocks) {
    this.#parameters = parameters
    this.gradients = gradients
    this.#indices = blockIndices(model)
  }

  weights(layer: number): Float32Array {
    return this.#parameters[this.blockIndex(layer)]
  }

  pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    fillBlock(this.gradients[this.blockIndex(layer)], gradients)
  }

  skip(layer: number): void {
    this.gradients[this.blockIndex(layer)].fill(0)
  }

  protected blockIndex(layer: number): number {
    return this.#indices[layer] as number
  }
}

/** Adds a minibatch's gradients to sums; `rollBack` undoes it. */
export class TransactionalGradientStore extends BlockStore {
  readonly #before: Blocks
  readonly #added: number[] = []

  /** @param before scratch memory for the previous contents of the sums; of the same layout */
  constructor(model: Model, parameters: Blocks, sum: Blocks, before: Blocks) {
    super(model, parameters, sum)
    this.#before = before
  }

  /** @throws DivergenceError if the gradient is not finite; it is not added then */
  override pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    if (!gradients.every(isFiniteBlock)) throw new DivergenceError('the gradient is not a finite number')
    const block = this.blockIndex(layer)
    const sum = this.gradients[block]
    this.#before[block].set(sum)
    this.#added.push(block)
    let offset = 0
    for (const gradient of gradients) {
      addToBlock(sum.subarray(offset), gradient)
      offset += gradient.length
    }
  }

  /** Adds nothing. */
  override skip(): void {}

  /** Restores the sums. */
  rollBack(): void {
    for (const block of this.#added.splice(0)) this.gradients[block].set(this.#before[block])
  }
}
