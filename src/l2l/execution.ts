/** Creates the models, devices and learners that execute a network on this machine. */
import { type Device, openDevice } from '../device/index.js'
import { createModel } from '../nn/create-model.js'
import type { NetworkSpec } from '../nn/spec/network-spec.js'
import type { Model } from '../nn/types.js'
import type { Execution } from './executor/types.js'
import { NetworkLearner } from './network-learner.js'
import { resolveExecution } from './planning/planner.js'

/** @throws ModelError */
export function networkModel({ layers, sample, target }: NetworkSpec): Model {
  return createModel(layers, sample, target)
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
  if (execution === undefined) return new NetworkLearner(model, {})
  await deviceFor(execution)
  const { executorOptions } = resolveExecution(model, execution, batch)
  const learner = new NetworkLearner(model, executorOptions)
  const { workers = 1, backend } = execution
  if (workers > 1) await learner.startWorkers(spec, backend, executorOptions, workers)
  return learner
}
