/**
 * A neural network as a `Learner`: whoever drives linear models drives this, and the parameters are blocks, one a layer. The
 * relay executes it; between calls nothing of it is on the device.
 */
import {
  type Blocks,
  DivergenceError,
  ExampleError,
  type Examples,
  type Layout,
  type Learner,
  type Prediction,
  type Score,
  zeros
} from '../learner/index.js'
import { initialBlocks, layoutOf } from './blocks.js'
import type { NetworkSpec } from './description.js'
import type { Execution } from './execution-options.js'
import { addToBlock, blockNumbers, fillBlock } from './parameters.js'
import { Relay, type RelayOptions } from './relay/relay.js'
import type { Host } from './relay/types.js'
import { DenseRows } from './rows.js'
import { isFiniteBlock } from './training/block-step.js'
import type { Model } from './types.js'
import { DevicePool, WorkerFailedError } from './workers/pool.js'

/** Seed of fresh weights: the same on every peer. */
export const INITIAL_SEED = 20020564
/** Rows scored at once: outputs of two layers of them are stashed. */
const SCORE_ROWS = 256

/** Lends blocks, and writes gradients over others. */
export class BlocksHost implements Host {
  readonly #numbers: readonly (number | undefined)[]

  constructor(
    model: Model,
    private readonly parameters: Blocks,
    private readonly gradients: Blocks
  ) {
    this.#numbers = blockNumbers(model)
  }

  weights(layer: number): Float32Array {
    return this.parameters[this.#numbers[layer] as number]
  }

  take(layer: number, gradients: readonly Float32Array[]): void {
    fillBlock(this.gradients[this.#numbers[layer] as number], gradients)
  }

  skip(layer: number): void {
    this.gradients[this.#numbers[layer] as number].fill(0)
  }
}

export class NetworkLearner implements Learner {
  readonly layout: Layout
  readonly classifies: boolean
  readonly relay: Relay
  readonly #rows: DenseRows
  #scratch: Float32Array[] | undefined
  #pool: { readonly devices: DevicePool; readonly weights: readonly Float32Array[] } | undefined

  /** @throws OptionError for options that do not go together */
  constructor(
    readonly model: Model,
    options: RelayOptions
  ) {
    this.layout = layoutOf(model)
    this.classifies = model.head.classifies
    this.relay = new Relay(model, options)
    this.#rows = new DenseRows(model)
  }

  /**
   * Starts worker threads that take parts of what gradients are asked for.
   * @param workers devices in all, ≥ 2
   * @throws DeviceError
   */
  async share(
    network: NetworkSpec,
    backend: Execution['backend'],
    relay: RelayOptions,
    workers: number
  ): Promise<void> {
    const weights = this.layout.blocks.map(({ length }) => new Float32Array(new SharedArrayBuffer(4 * length)))
    this.#pool = {
      devices: await DevicePool.open({ network, backend, relay, weights: { blocks: weights }, workers }),
      weights
    }
  }

  initial(): Float32Array[] {
    return initialBlocks(this.model, INITIAL_SEED)
  }

  score(parameters: Blocks, examples: Examples, from: number, to: number, into: Score): void {
    const host = new BlocksHost(this.model, parameters, [])
    for (let row = from; row < to; row += SCORE_ROWS) {
      const { loss, hits } = this.relay.score(host, this.#gather(examples, row, Math.min(to, row + SCORE_ROWS)))
      into.loss += loss
      into.hits += hits
    }
  }

  /**
   * A gradient that is not finite is never added: the rows are then taken one by one, as far as the one to blame.
   * @throws ExampleError naming the first row that does not fit or has no finite gradient; rows before it have been added
   */
  addGradient(parameters: Blocks, examples: Examples, from: number, to: number, sum: Blocks): void {
    if (from === to) return
    const batch = this.#gather(examples, from, to)
    if (this.#add(parameters, batch, sum)) return
    for (let row = from; row < to; row++) {
      if (!this.#add(parameters, this.#gather(examples, row, row + 1), sum)) {
        throw new ExampleError(row, 'the gradient is not a finite number: scale the features, or use a smaller step')
      }
    }
  }

  /** Some hundred rows at once, for each of which the whole model goes to the device once. */
  predict(parameters: Blocks, examples: Examples, from: number, to: number): Prediction[] {
    const host = new BlocksHost(this.model, parameters, [])
    const predictions: Prediction[] = []
    for (let first = from; first < to; first += SCORE_ROWS) {
      const end = Math.min(to, first + SCORE_ROWS)
      this.#rows.clear()
      for (let row = first; row < end; row++) this.#rows.appendUnlabelled(examples, row)
      const all = this.relay.predict(host, this.#rows)
      const each = all.length / (end - first)
      for (let at = 0; at < all.length; at += each) predictions.push(this.#predictionOf(all.subarray(at, at + each)))
    }
    return predictions
  }

  /** @param outputs the head's, of one row */
  #predictionOf(outputs: Float32Array): Prediction {
    if (!this.classifies) return { label: outputs[0], scores: [outputs[0]] }
    // Of a sequence, what comes after its last position.
    const scores = Array.from(outputs.subarray(outputs.length - (this.model.head.input.at(-1) as number)))
    return { label: scores.indexOf(Math.max(...scores)), scores }
  }

  /** @returns whether the gradient was finite; if not, nothing was added */
  #add(parameters: Blocks, batch: DenseRows, sum: Blocks): boolean {
    this.#scratch ??= zeros(this.layout)
    try {
      this.#train(new BlocksHost(this.model, parameters, this.#scratch), parameters, batch)
    } catch (error) {
      if (error instanceof DivergenceError) return false
      // Nothing was added yet, and the pool goes on without the one that failed.
      if (error instanceof WorkerFailedError) return this.#add(parameters, batch, sum)
      throw error
    }
    if (!this.#scratch.every(isFiniteBlock)) return false
    for (const [k, block] of this.#scratch.entries()) addToBlock(sum[k], block)
    return true
  }

  #train(host: Host, parameters: Blocks, batch: DenseRows): void {
    if (this.#pool === undefined) {
      this.relay.train(host, batch)
      return
    }
    const { devices, weights } = this.#pool
    for (const [k, block] of weights.entries()) block.set(parameters[k])
    devices.train(this.relay, host, batch)
  }

  /** @throws ExampleError for a row that does not fit, after those before it were taken: see `addGradient` */
  #gather(examples: Examples, from: number, to: number): DenseRows {
    this.#rows.clear()
    for (let row = from; row < to; row++) this.#rows.append(examples, row)
    return this.#rows
  }
}
