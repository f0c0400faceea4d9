/** How this machine executes a network: nobody else's affair, and no part of what peers agree on. */
import { type Device, type DeviceName, openDevice } from '../device/index.js'
import type { NetworkSpec } from './description.js'
import { createModel } from './models/create.js'
import { NetworkLearner } from './network.js'
import type { RelayOptions } from './relay/relay.js'
import type { Model } from './types.js'

export interface Execution extends RelayOptions {
  /** Default `auto`: the first that works. */
  readonly backend?: DeviceName | 'auto'
}

/** @throws ModelError */
export function networkModel({ layers, sample, target }: NetworkSpec): Model {
  return createModel(layers, sample, target)
}

/** @throws DeviceError */
export function deviceFor({ backend = 'auto', deviceMemory }: Execution): Promise<Device> {
  return openDevice(backend, deviceMemory)
}

/**
 * The network as a learner.
 * @param execution undefined if nothing will be computed, only the layout is wanted
 * @throws ModelError, OptionError, DeviceError
 */
export async function networkLearner(spec: NetworkSpec, execution: Execution | undefined): Promise<NetworkLearner> {
  if (execution !== undefined) await deviceFor(execution)
  return new NetworkLearner(networkModel(spec), execution ?? {})
}
