/**
 * The planner: finds the fastest way to execute a minibatch within the device's memory. It tries every microbatch size and stash
 * location, which may differ between layers. Times are summed, because the supported backends compute and copy on one thread.
 * The baseline schedules keep everything on the device at once. Schedules that divide the model are planned only when they are asked for.
 */
import { availableParallelism } from 'node:os'
import { formatBytes } from '../../base/errors.js'
import { OptionError } from '../../learning/index.js'
import { blockIndices, shapesOf } from '../../nn/blocks.js'
import { FLOAT_BYTES, type Model } from '../../nn/types.js'
import { checkSchedule } from '../executor/executor.js'
import { OverBudgetError } from '../executor/step.js'
import {
  dividesModel,
  type Execution,
  type ExecutorOptions,
  type GroupExecution,
  isPipeline,
  keepsAll,
  SCHEDULES,
  type Schedule
} from '../executor/types.js'
import { codeLength, type GradientCode, gradientCode } from '../workers/gradient-codes.js'
import { closedFormMs, inGroup, ONE_DEVICE, rowsOf, withShardedFeed } from './group.js'
import { layerMs, pipelineFault, planPipelines, sectionBytes } from './pipeline.js'
import { backwardBytes, planLayerwise } from './plan-layerwise.js'
import { type DeviceProfile, inputBytes, profileModel } from './profile.js'
import { inTensorGroup, profileShare, tensorFault } from './tensor.js'
import { layerTimes } from './times.js'
import { type GroupDevice, type Plan, type PlanRequest, stepTimes } from './types.js'

/** Limit of the bytes of activations that move to the host, of all workers. */
const HOST_MEMORY = 2 ** 30

interface ResolvedExecution {
  readonly executorOptions: ExecutorOptions
  /** Undefined unless the schedule is `auto` or divides the model, or activations are in few bits. */
  readonly plan: Plan | undefined
}

/**
 * Plans the schedule `auto`, those that divide the model, and which layers save their activations in few bits; any other options are
 * used as they are.
 * @param batch samples per minibatch
 * @throws OptionError for a schedule that these devices or layers do not allow, or a code of gradients without device workers; OverBudgetError naming the layer that needs the most memory, if no plan fits
 */
export function resolveExecution(model: Model, execution: GroupExecution, batch: number): ResolvedExecution {
  const { deviceMemory, microbatch, stash, bits, gradients, hasRemoteWorkers = false } = execution
  if (gradients !== undefined && !hasRemoteWorkers)
    throw new OptionError(
      `gradients=${gradients} is for the lines of device workers, and this process admits none: give a peer token=FILE as well, or omit it`
    )
  const schedule = execution.schedule ?? (bits === undefined ? undefined : 'l2l')
  if (schedule !== 'auto' && !dividesModel(schedule) && bits === undefined) {
    return { executorOptions: { schedule, deviceMemory, microbatch, stash }, plan: undefined }
  }
  const profile = profileModel(model, true, bits)
  // Workers of other processes may join.
  const workers = Math.max(execution.workers ?? 1, hasRemoteWorkers && isPipeline(schedule) ? 2 : 1)
  const asked = { ...execution, schedule, workers }
  let plan = planFor(model, profile, asked, batch)
  if (hasRemoteWorkers && plan.pipeline && plan.stash === 'device' && stash === undefined) {
    // They also leave: one device must be able to execute what several do.
    const alone = planRequest(model, profile, { ...asked, schedule: 'baseline-ag' }, batch, ONE_DEVICE)
    if (planBaseline(alone, 'baseline-ag', plan.microbatch) === undefined)
      plan = planFor(model, profile, { ...asked, stash: 'host' }, batch)
  }
  const options = { ...executorOptionsOf(plan, deviceMemory), bits }
  return { executorOptions: { ...options, pipeline: stagesOf(plan, profile, workers) }, plan }
}

/** How the stages of a planned pipeline are cut and execute their layers; undefined for other plans. */
export function stagesOf(
  { microbatch, stash, layers, pipeline }: Plan,
  profile: DeviceProfile,
  workers = 1
): ExecutorOptions['pipeline'] {
  if (pipeline === undefined) return undefined
  const { cut, group } = pipeline
  const ms = layerMs(profile, stash === 'host' ? { rows: group * microbatch, layers } : undefined)
  return { chunks: cut.length / workers, group, layerMs: ms }
}

/**
 * @param devices of the group @default `workers` equal devices of this machine
 * @throws OptionError for conflicting options
 */
export function planRequest(
  model: Model,
  profile: DeviceProfile,
  execution: Execution,
  batch: number,
  devices: readonly GroupDevice[] = localDevices(execution.workers ?? 1)
): PlanRequest {
  const { deviceMemory = Number.POSITIVE_INFINITY, microbatch, stash, bits, gradients } = execution
  const schedule = execution.schedule === 'auto' ? undefined : execution.schedule
  checkSchedule({ schedule, microbatch, stash, bits })
  const fault =
    schedule === 'tensor'
      ? tensorFault(model, devices)
      : schedule && pipelineFault(schedule, model.layers.length, devices)
  if (fault !== undefined) throw new OptionError(`schedule ${schedule} ${fault}`)
  let share: DeviceProfile | undefined
  const tensor = () => {
    share ??= profileShare(model, profile, devices.length)
    return share
  }
  return {
    profile,
    tensor: tensorFault(model, devices) === undefined ? tensor : undefined,
    inputBytes: inputBytes(model),
    codedBytes: gradients && codedBytes(model, gradientCode(gradients)),
    batch,
    devices,
    deviceMemory,
    hostMemory: HOST_MEMORY / devices.length,
    fixed: { schedule, microbatch, stash }
  }
}

/** Bytes of the code of each layer's gradient. */
function codedBytes(model: Model, code: GradientCode): readonly number[] {
  const coded = { code, shapes: shapesOf(model) }
  return blockIndices(model).map(block => (block === undefined ? 0 : FLOAT_BYTES * codeLength(coded, block)))
}

/** Equal devices of this machine, which share its cores. */
export function localDevices(count: number): readonly GroupDevice[] {
  const speed = Math.min(1, availableParallelism() / count)
  return Array.from({ length: count }, () => ({ speed }))
}

/**
 * The plan of each device, which executes its share of a minibatch.
 * @throws OverBudgetError
 */
export function planFor(model: Model, profile: DeviceProfile, execution: Execution, batch: number): Plan {
  return fastestPlan(planRequest(model, profile, execution, batch))
}

/** @throws OverBudgetError */
export function fastestPlan(request: PlanRequest): Plan {
  const { deviceMemory } = request
  const plan = makePlan(request)
  if (!('tooLarge' in plan)) return plan
  const { tooLarge, needsBytes } = plan
  if (needsBytes > deviceMemory) {
    const advice = `use --device-memory ${enough(needsBytes)} or more, a smaller --microbatch, or narrower layers`
    throw new OverBudgetError(`layer ${tooLarge}`, needsBytes, deviceMemory, advice)
  }
  const bytes = leastMemory(request)
  const advice = `use --device-memory ${enough(bytes)} or more, or --schedule auto without --microbatch and --stash`
  throw new OverBudgetError('a step with these options', bytes, deviceMemory, advice)
}

/** The fastest plan of each schedule that the request allows; undefined where none fits. */
export function alternatives(request: PlanRequest): { readonly schedule: Schedule; readonly plan: Plan | undefined }[] {
  const { fixed, profile, devices } = request
  const possible = SCHEDULES.filter(
    schedule =>
      (schedule !== 'tensor' || request.tensor !== undefined) &&
      pipelineFault(schedule, profile.layers.length, devices) === undefined
  )
  return (fixed.schedule === undefined ? possible : [fixed.schedule]).map(schedule => {
    const microbatch = schedule === 'baseline' ? undefined : fixed.microbatch
    const plan = makePlan({ ...request, fixed: { ...fixed, schedule, microbatch } })
    return { schedule, plan: 'tooLarge' in plan ? undefined : plan }
  })
}

/** How much faster a group is than one device of speed 1 with the same schedule and limits. */
interface Speedup {
  readonly expected: number
  /** An upper bound of it, which is exact without lines: see `closedFormMs`. */
  readonly closedForm: number
  /** With a minibatch that can be divided in any way, and without copies. */
  readonly ideal: number
  /** With a sharded feed, and the most bytes that a device then receives from this machine. @default there is no feed to divide */
  readonly sharded?: { readonly expected: number; readonly closedForm: number; readonly receivedBytes: number }
}

/** @returns undefined for one device, or where it does not fit alone */
export function speedupOf(request: PlanRequest, plan: Plan): Speedup | undefined {
  const schedule = dividesModel(plan.schedule) ? 'baseline-ag' : plan.schedule
  const alone = makePlan({ ...request, devices: ONE_DEVICE, fixed: { ...request.fixed, schedule } })
  if (plan.devices === undefined || 'tooLarge' in alone) return undefined
  const ideal = request.devices.reduce((sum, { speed }) => sum + speed, 0)
  const fed = withShardedFeed(request, plan)
  const sharded = fed && {
    expected: alone.stepMs / fed.stepMs,
    closedForm: alone.stepMs / closedFormMs(request, fed, true),
    receivedBytes: Math.max(...(fed.devices ?? []).map(({ receivedBytes }) => receivedBytes))
  }
  return {
    sharded,
    expected: alone.stepMs / plan.stepMs,
    closedForm: alone.stepMs / closedFormMs(request, plan),
    ideal
  }
}

/** @returns the fastest plan, or, if none fits, the layer that needs the most memory */
export function makePlan(request: PlanRequest): Plan | { readonly tooLarge: string; readonly needsBytes: number } {
  const { batch, devices, fixed, profile } = request
  const plans = [...planPipelines(request, halvings(batch)), ...planTensor(request)]
  /** Plans the largest share of the minibatch. @param unit rows that are not divided */
  const add = (unit: number, planOf: (share: PlanRequest) => Plan | undefined) => {
    const rows = rowsOf(batch, unit, devices)
    const plan = planOf({ ...request, batch: Math.max(...rows) })
    if (plan) plans.push(inGroup(request, plan, rows))
  }
  const equalShare = Math.ceil(batch / devices.length)
  for (const microbatch of fixed.microbatch ? [Math.min(batch, fixed.microbatch)] : halvings(equalShare)) {
    for (const schedule of baselinesOf(fixed)) {
      const isWhole = schedule === 'baseline'
      add(isWhole ? 1 : microbatch, share => planBaseline(share, schedule, isWhole ? share.batch : microbatch))
    }
    if (fixed.schedule !== undefined && keepsAll(fixed.schedule)) continue
    for (const stash of fixed.stash ? [fixed.stash] : (['device', 'host'] as const)) {
      add(microbatch, share => planLayerwise(share, fixed.schedule ?? 'l2l-p', microbatch, stash))
    }
  }
  if (plans.length > 0) return plans.reduce((best, plan) => (plan.stepMs < best.stepMs ? plan : best))
  const least = profile.layers.map(layer => layer.weightBytes + backwardBytes(layer, 0, 1, false))
  const needsBytes = Math.max(...least)
  return { tooLarge: profile.layers[least.indexOf(needsBytes)].name, needsBytes }
}

/** Plans of the largest share of the model, for the microbatches that fit. */
function planTensor(request: PlanRequest): Plan[] {
  const { fixed, batch, tensor } = request
  if (fixed.schedule !== 'tensor' || tensor === undefined) return []
  const share = tensor()
  return (fixed.microbatch ? [Math.min(batch, fixed.microbatch)] : halvings(batch)).flatMap(microbatch => {
    const plan = planBaseline({ ...request, profile: share }, 'tensor', microbatch)
    return plan === undefined ? [] : [inTensorGroup(request, share, plan)]
  })
}

/** Among equally fast plans, the first is chosen. `baseline` divides a minibatch by rows, so a group may be faster with it. */
function baselinesOf({ schedule, microbatch, stash }: PlanRequest['fixed']): Schedule[] {
  if (stash !== undefined) return []
  if (schedule !== undefined) return schedule.startsWith('baseline') ? [schedule] : []
  return microbatch === undefined ? ['baseline-ag', 'baseline'] : ['baseline-ag']
}

/** batch, batch/2, … 1, rounded up. */
function halvings(batch: number): number[] {
  const sizes = [batch]
  for (let size = batch; size > 1; ) {
    size = Math.ceil(size / 2)
    sizes.push(size)
  }
  return sizes
}

/** The memory in which some plan fits, to 1 %; more than the request allows. */
function leastMemory(request: PlanRequest): number {
  const fits = (deviceMemory: number) => !('tooLarge' in makePlan({ ...request, deviceMemory }))
  let most = 2 * request.deviceMemory
  while (!fits(most)) most *= 2
  let least = most / 2
  while (most > 1.01 * least) {
    const middle = (least + most) / 2
    if (fits(middle)) most = middle
    else least = middle
  }
  return most
}

/** For `--device-memory`. */
function enough(bytes: number): string {
  return formatBytes(1.1 * bytes).replace(' ', '')
}

function executorOptionsOf(plan: Plan, deviceMemory: number | undefined): ExecutorOptions {
  const { schedule, microbatch, stash, layers } = plan
  return { schedule, microbatch: schedule === 'baseline' ? undefined : microbatch, stash, layers, deviceMemory }
}

/** @returns undefined if it does not fit */
function planBaseline(request: PlanRequest, schedule: Schedule, microbatch: number): Plan | undefined {
  const { profile, batch, deviceMemory } = request
  const { layers, head } = profile
  const isSplit = microbatch < batch
  const { weights, gradients, forward, backward, merge } = sectionBytes(request, 0, layers.length, microbatch, isSplit)
  const deviceBytes = weights + Math.max(merge, (isSplit ? gradients : 0) + Math.max(forward, backward))
  const way = { schedule, stash: 'device', layers: layers.map(() => ({})) } as const
  const plan: Plan = {
    ...way,
    microbatch,
    deviceBytes,
    stashBytes: 0,
    ...stepTimes(layerTimes(profile, way, batch), head.ms * batch)
  }
  return deviceBytes <= deviceMemory ? plan : undefined
}
