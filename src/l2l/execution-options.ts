/** How this machine is asked to execute a network: nobody else's affair, and no part of what peers agree on. */
import type { DeviceName } from '../device/types.js'
import type { ExecutorOptions } from './executor/executor.js'
import type { Schedule } from './executor/types.js'

export interface Execution extends Omit<ExecutorOptions, 'schedule' | 'keeps'> {
  /** Default `auto`: the first that works. */
  readonly backend?: DeviceName | 'auto'
  /** `auto`: the planner decides on what else is not given. Default `l2l`. */
  readonly schedule?: Schedule | 'auto'
  /** Devices that share each minibatch, in a thread each; what is said of the device is meant of each. Default 1. */
  readonly workers?: number
}
