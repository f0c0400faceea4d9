/** Creates the models, devices and learners that execute a network on this machine. */
import { type Device, openDevice } from '../device/index.js'
import { OptionError } from '../learner/index.js'
import { createModel } from '../nn/create-model.js'
import type { NetworkSpec } from '../nn/spec/network-spec.js'
import type { Model } from '../nn/types.js'
import { initialWeights, openCheckpoint } from '../nn/weights/checkpoint.js'
import type { Execution } from './executor/types.js'
import { INITIAL_SEED, NetworkLearner } from './network-learner.js'
import { resolveExecution } from './planning/planner.js'

/** @throws ModelError */
export function networkModel({ layers, sample, target }: NetworkSpec): Model {
  return createModel(layers, sample, target)
}

/**
 * The initial weights of a network that starts from a checkpoint, read one block at a time; undefined for one that does not.
 * @throws OptionError, when they are read, if this machine was not given the checkpoint; ModelError
 */
export function initialOf(
  spec: NetworkSpec,
  model: Model,
  checkpoint: string | undefined
): (() => Iterable<Float32Array>) | undefined {
  if (spec.weights === undefined) return undefined
  return () => {
    if (checkpoint !== undefined) return initialWeights(model, openCheckpoint(checkpoint), INITIAL_SEED).blocks()
    throw new OptionError(`the network starts from the weights ${spec.weights}: give them (--weights PATH)`)
  }
}

/** @throws DeviceError */
export function deviceFor({ backend = 'auto' }: Execution): Promise<Device> {
  return openDevice(backend)
}

/**
 * The network as a learner.
 * @param batch inputs per minibatch, for the planner
 * @param execution undefined if only the layout is needed and nothing will be computed
 * @throws ModelError, OptionError, DeviceError
 */
export async function networkLearner(
  spec: NetworkSpec,
  batch: number,
  execution: Execution | undefined
): Promise<NetworkLearner> {
  const model = networkModel(spec)
  const initial = initialOf(spec, model, execution?.checkpoint)
  if (execution === undefined) return new NetworkLearner(model, {}, undefined, initial)
  await deviceFor(execution)
  const { executorOptions } = resolveExecution(model, execution, batch)
  const learner = new NetworkLearner(model, executorOptions, undefined, initial)
  const { workers = 1, backend } = execution
  if (workers > 1) await learner.startWorkers(spec, backend, executorOptions, workers)
  return learner
}
