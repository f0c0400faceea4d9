/** From what was asked for to how it will be executed: a schedule `auto` is planned, everything else is left as it is. */

import type { Model } from '../../nn/types.js'
import type { Execution } from '../execution-options.js'
import type { ExecutorOptions } from '../executor/executor.js'
import { OverBudgetError } from '../executor/meter.js'
import { formatBytes } from '../format-bytes.js'
import { makePlan } from './plan.js'
import { type DeviceProfile, inputBytes, profileModel } from './profile.js'
import type { Plan } from './task.js'

export interface ResolvedExecution {
  readonly executorOptions: ExecutorOptions
  /** Undefined if nothing was left to plan. */
  readonly plan: Plan | undefined
}

/**
 * @param batch samples a minibatch
 * @throws OverBudgetError naming the layer that needs the most, where nothing fits
 */
export function resolveExecution(model: Model, execution: Execution, batch: number): ResolvedExecution {
  const { schedule, deviceMemory, microbatch, stash, precision } = execution
  if (schedule !== 'auto') {
    return { executorOptions: { schedule, deviceMemory, microbatch, stash, precision }, plan: undefined }
  }
  const plan = planFor(model, profileModel(model), execution, batch)
  return { executorOptions: { ...executorOptionsOf(plan, deviceMemory), precision }, plan }
}

/** For one of the workers, each of which has its part of a minibatch. @throws OverBudgetError */
export function planFor(model: Model, profile: DeviceProfile, execution: Execution, batch: number): Plan {
  const {
    schedule,
    deviceMemory = Number.POSITIVE_INFINITY,
    microbatch,
    stash,
    precision = 'float32',
    workers = 1
  } = execution
  const fixed = { schedule: schedule === 'auto' ? undefined : schedule, microbatch, stash }
  const plan = makePlan({
    profile,
    inputBytes: inputBytes(model),
    batch: Math.ceil(batch / workers),
    deviceMemory,
    precision,
    fixed
  })
  if ('tooLarge' in plan)
    throw new OverBudgetError(`layer ${plan.tooLarge}`, plan.needsBytes, deviceMemory, adviceFor(plan))
  return plan
}

function adviceFor({ needsBytes }: { readonly needsBytes: number }): string {
  return `give --device-memory ${formatBytes(1.1 * needsBytes).replace(' ', '')} or more, a smaller --microbatch, or narrower layers`
}

function executorOptionsOf({ schedule, microbatch, ...plan }: Plan, deviceMemory: number | undefined): ExecutorOptions {
  const { stash, keeps, resident } = plan
  return {
    schedule,
    microbatch: schedule === 'baseline' ? undefined : microbatch,
    stash,
    keeps,
    resident,
    deviceMemory
  }
}
