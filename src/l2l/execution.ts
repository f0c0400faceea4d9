/** Creates the models, devices and learners that execute a network on this machine. */
import { type Device, openDevice } from '../device/index.js'
import { type Blocks, OptionError } from '../learning/index.js'
import { eachInitialBlock, layersWithBlocks, lazyBlocks, mergedBlocks, shapesOf } from '../nn/blocks.js'
import { createModel } from '../nn/create-model.js'
import { forkSeed, uniforms } from '../nn/random.js'
import type { NetworkSpec } from '../nn/spec/network-spec.js'
import type { Model } from '../nn/types.js'
import { initialWeights, openCheckpoint, weightsDigest } from '../nn/weights/checkpoint.js'
import { dividesModel, type Execution, type FrozenWeights, type GroupExecution } from './executor/types.js'
import { INITIAL_SEED, NetworkLearner } from './network-learner.js'
import { resolveExecution } from './planning/planner.js'
import { gradientCode } from './workers/gradient-codes.js'
import { DevicePool } from './workers/pool.js'

/** Seed of the adapters' initial weights. */
const ADAPTER_SEED = INITIAL_SEED + 1

/** @throws ModelError */
export function networkModel({ layers, sample, target, tuning }: NetworkSpec): Model {
  return createModel(layers, sample, target, tuning)
}

/** The network with all its weights, none of them frozen. */
export function wholeNetwork<Spec extends NetworkSpec>(spec: Spec): Spec {
  return { ...spec, tuning: undefined }
}

/**
 * The initial weights of a network that starts from a checkpoint or has frozen layers, read one block at a time; undefined for others.
 * @throws OptionError, when they are read, if this machine was not given the checkpoint; ModelError
 */
export function initialOf(
  spec: NetworkSpec,
  model: Model,
  checkpoint: string | undefined
): (() => Iterable<Float32Array>) | undefined {
  if (spec.weights === undefined && spec.tuning === undefined) return undefined
  return () => trainedBlocks(spec, model, checkpoint)
}

function* trainedBlocks(spec: NetworkSpec, { layers }: Model, checkpoint: string | undefined): Generator<Float32Array> {
  const isWhole = (l: number) => layers[l].weights.length > 0 && layers[l].frozen === undefined
  const whole = startingBlocks(spec, checkpoint, isWhole)
  for (const [l, layer] of layers.entries()) {
    if (isWhole(l)) yield (whole.next().value as StartingBlock).block
    else if (layer.weights.length > 0) yield layer.initialWeights(uniforms(forkSeed(ADAPTER_SEED, l)))
  }
}

/**
 * The frozen weights of a network, in memory that threads share; undefined if all its weights are trained.
 * @throws OptionError if this machine was not given the checkpoint that the network starts from; ModelError
 */
export function frozenOf(spec: NetworkSpec, model: Model, checkpoint: string | undefined): FrozenWeights | undefined {
  const { layers } = model
  if (layers.every(({ frozen }) => frozen === undefined)) return undefined
  const blocks: (Float32Array | undefined)[] = layers.map(() => undefined)
  for (const { layer, block } of startingBlocks(spec, checkpoint, l => layers[l].frozen !== undefined)) {
    const shared = new Float32Array(new SharedArrayBuffer(block.byteLength))
    shared.set(block)
    blocks[layer] = shared
  }
  return blocks
}

interface StartingBlock {
  readonly layer: number
  readonly block: Float32Array
}

/** Blocks of the whole network, before it is trained, of the layers that are wanted. */
function* startingBlocks(
  spec: NetworkSpec,
  checkpoint: string | undefined,
  isWanted: (layer: number) => boolean
): Generator<StartingBlock> {
  const model = networkModel(wholeNetwork(spec))
  const withBlocks = layersWithBlocks(model).map(layer => model.layers.indexOf(layer))
  const wants = (block: number) => isWanted(withBlocks[block])
  const wanted = withBlocks.filter(isWanted)
  const blocks = wanted.length === 0 ? [] : blocksOf(spec, model, checkpoint, wants)
  let next = 0
  for (const block of blocks) yield { layer: wanted[next++], block }
}

/**
 * The weights of a checkpoint for predictions, which read one block at a time from its files.
 * @returns undefined for a network that starts otherwise, or is trained in part
 * @throws OptionError if this machine was not given the checkpoint; ModelError, when they are read
 */
export function checkpointBlocks(spec: NetworkSpec, checkpoint: string | undefined): Blocks | undefined {
  if (spec.weights === undefined || spec.tuning !== undefined) return undefined
  const model = networkModel(spec)
  return lazyBlocks(layersWithBlocks(model).length, index => {
    const [block] = blocksOf(spec, model, checkpoint, k => k === index)
    return block
  })
}

function blocksOf(
  { weights, tuning }: NetworkSpec,
  model: Model,
  checkpoint: string | undefined,
  wants: (block: number) => boolean
): Iterable<Float32Array> {
  if (weights === undefined) return eachInitialBlock(model, INITIAL_SEED, wants)
  if (checkpoint === undefined) {
    throw new OptionError(`the network starts from the weights ${weights}: give them (--weights PATH)`)
  }
  const opened = openCheckpoint(checkpoint)
  const digest = tuning === undefined ? weights : weightsDigest(opened)
  if (digest === weights) return initialWeights(model, opened, INITIAL_SEED).blocks(wants)
  throw new OptionError(
    `the model was made from the weights ${weights}, and ${checkpoint} holds ${digest}: give the former`
  )
}

/**
 * The weights of the whole network: frozen ones with the adapters added, and trained ones.
 * @param checkpoint that the network starts from, if some of its weights are frozen
 * @throws OptionError if the checkpoint is another; ModelError
 */
export function wholeBlocks(
  spec: NetworkSpec,
  blocks: readonly Float32Array[],
  checkpoint: string | undefined
): readonly Float32Array[] {
  const model = networkModel(spec)
  const frozen = frozenOf(spec, model, checkpoint)
  return frozen === undefined ? blocks : mergedBlocks(model, blocks, frozen)
}

/** @throws DeviceError */
export function deviceFor({ backend = 'auto' }: Execution): Promise<Device> {
  return openDevice(backend)
}

/**
 * The network as a learner.
 * @param batch inputs per minibatch, for the planner
 * @param execution undefined if only the layout is needed and nothing will be computed
 * @param classWeights factors of the gradients by class @default 1
 * @throws ModelError, OptionError, DeviceError
 */
export async function networkLearner(
  spec: NetworkSpec,
  batch: number,
  execution: GroupExecution | undefined,
  classWeights?: readonly number[]
): Promise<NetworkLearner> {
  const model = networkModel(spec)
  const initial = initialOf(spec, model, execution?.checkpoint)
  if (execution === undefined) return new NetworkLearner(model, {}, undefined, initial)
  await deviceFor(execution)
  const frozen = frozenOf(spec, model, execution.checkpoint)
  const { workers = 1, backend, hasRemoteWorkers = false, schedule, gradients } = execution
  if (hasRemoteWorkers && schedule === 'tensor')
    throw new OptionError('schedule tensor does not admit device workers (token=FILE): omit the token, or use l2l-p')
  if (gradients && dividesModel(schedule))
    throw new OptionError(
      `schedule ${schedule} returns gradients as they are: omit gradients=${gradients}, or use l2l-p`
    )
  const executorOptions = { ...resolveExecution(model, execution, batch).executorOptions, frozen, classWeights }
  const learner = new NetworkLearner(model, executorOptions, undefined, initial)
  if (workers > 1 || hasRemoteWorkers) {
    const blocks = learner.layout.blocks.map(({ length }) => new Float32Array(new SharedArrayBuffer(4 * length)))
    const versions = new Int32Array(new SharedArrayBuffer(4 * blocks.length))
    const weights = { blocks, versions: hasRemoteWorkers ? versions : undefined }
    const coded = gradients && { code: gradientCode(gradients), shapes: shapesOf(model) }
    learner.devices = await DevicePool.open({ network: spec, backend, executorOptions, weights, workers, coded })
  }
  return learner
}
