/**
 * The expected step of a device group: data parallel L2L-p (Pudipeddi et al., "parallel reduce"), and any other schedule, whose
 * microbatches several devices share. Each device executes all layers. Weights come to it, and gradients leave it, through the memory of
 * this machine or over a line, in parallel with execution.
 */
import { dividesModel } from '../executor/types.js'
import { divide } from '../workers/balancer.js'
import { arrivals, fedDevices, feedMs } from './feed.js'
import { type LayerTime, layerTimes } from './times.js'
import type { DevicePlan, GroupDevice, Plan, PlanRequest } from './types.js'

/** Devices of the group that was measured: the first of this machine. */
export const ONE_DEVICE: readonly GroupDevice[] = [{ speed: 1 }]

/** The rows of each device, as the pool of devices divides a minibatch. */
export function rowsOf(batch: number, microbatch: number, devices: readonly GroupDevice[]): readonly number[] {
  const count = Math.ceil(batch / microbatch)
  let left = batch
  return divide(
    count,
    devices.map(({ speed }) => 1 / speed)
  ).map(share => {
    const rows = Math.min(left, share * microbatch)
    left -= rows
    return rows
  })
}

/** @returns what each device does in a step of the plan */
export function devicePlans(
  { profile, inputBytes, devices, codedBytes }: PlanRequest,
  plan: Pick<Plan, 'schedule' | 'stash' | 'layers'>,
  rows: readonly number[],
  isSharded = false
): DevicePlan[] {
  const { layers, head, sumBytesPerMs } = profile
  const gradientBytes = layers.reduce((sum, layer) => sum + layer.gradientBytes, 0)
  const returned = codedBytes ?? layers.map(layer => layer.gradientBytes)
  const weightBytes = layers.reduce((sum, layer) => sum + (layer.gradientBytes > 0 ? layer.weightBytes : 0), 0)
  const active = rows.filter(count => count > 0).length
  // A peer has none, and its devices have lines.
  const hasServer = plan.schedule === 'l2l-p' && devices.every(device => device.lineBytesPerMs === undefined)
  const fed = fedDevices(devices, rows)
  const trained = layers.map(layer => (layer.gradientBytes > 0 ? layer.weightBytes : 0))
  const rowsMs = fed.map(({ device, rate }) => (rows[device] * inputBytes) / rate)
  const arrived = arrivals(fed, trained, rowsMs, isSharded)
  return devices.map((device, d) => {
    const f = fed.findIndex(each => each.device === d)
    const computed = layerTimes(profile, plan, rows[d])
    const times = computed.map(({ ms, forwardMs }, l) => {
      const inHead = l === computed.length - 1 ? head.ms * rows[d] : 0
      return { forwardMs: forwardMs / device.speed, backwardMs: (ms + inHead - forwardMs) / device.speed }
    })
    const computeMs = times.reduce((sum, { forwardMs, backwardMs }) => sum + forwardMs + backwardMs, 0)
    // Each device copies its gradients. Without threads of the parameter server, the first one also adds those of the others.
    const sums = active === 1 ? 0 : d === 0 && !hasServer ? active : 1
    const reductionMs = (sums * gradientBytes) / sumBytesPerMs
    const isRemote = f >= 0
    const endMs = isRemote ? streamedMs(plan, times, arrived[f], returned, fed[f].rate) : computeMs
    return {
      ...device,
      rows: rows[d],
      computeMs: computeMs + reductionMs,
      stepMs: rows[d] === 0 ? 0 : endMs + reductionMs,
      receivedBytes: isRemote ? weightBytes / (isSharded ? fed.length : 1) + rows[d] * inputBytes : 0,
      returnedBytes: isRemote ? returned.reduce((sum, bytes) => sum + bytes, 0) : 0
    }
  })
}

interface Split {
  readonly forwardMs: number
  readonly backwardMs: number
}

/** Time of a step whose weights arrive over a line in the order of the layers, and whose gradients return in the opposite order. */
function streamedMs(
  { schedule }: Pick<Plan, 'schedule'>,
  times: readonly Split[],
  arrived: readonly number[],
  returned: readonly number[],
  bytesPerMs: number
): number {
  const isBaseline = schedule.startsWith('baseline')
  const last = times.length - 1
  let end = 0
  for (const [l, { forwardMs }] of times.entries()) {
    // The baseline loads all layers first; L2L-p loads the next one before it executes a layer.
    const needed = isBaseline ? last : Math.min(last, schedule === 'l2l-p' ? l + 1 : l)
    end = Math.max(end, arrived[needed]) + forwardMs
  }
  const backwardEnd = times.reduce((sum, { backwardMs }) => sum + backwardMs, end)
  let sent = 0
  for (let l = last; l >= 0; l--) {
    end += times[l].backwardMs
    // The baseline has the sums of no layer before the last microbatch ends.
    sent = Math.max(sent, isBaseline ? backwardEnd : end) + returned[l] / bytesPerMs
  }
  return Math.max(backwardEnd, sent)
}

/**
 * A data-parallel plan whose feed is sharded: see `feed.ts`.
 * @returns undefined with fewer than two devices of other machines, or if devices divide the model
 */
export function withShardedFeed(request: PlanRequest, plan: Plan): Plan | undefined {
  const rows = plan.devices?.map(device => device.rows)
  if (rows === undefined || dividesModel(plan.schedule) || fedDevices(request.devices, rows).length < 2)
    return undefined
  const devices = devicePlans(request, plan, rows, true)
  return { ...plan, devices, stepMs: Math.max(...devices.map(({ stepMs }) => stepMs)) }
}

/** The plan with the time of the group that executes it. @param rows of each device */
export function inGroup(request: PlanRequest, plan: Plan, rows: readonly number[]): Plan {
  if (request.devices.length === 1) return plan
  const devices = devicePlans(request, plan, rows)
  const stepMs = Math.max(...devices.map(device => device.stepMs))
  // What the group adds to the time of the layers is one part more.
  const parts = [...plan.parts, { ms: stepMs - plan.stepMs, from: 0 }]
  return { ...plan, stepMs, parts, devices }
}

/**
 * A lower bound of the time of a group's step, in closed form: with f and b the times of the forward and the backward pass, W and G the
 * bytes of weights and gradients, B the speed of a line and R the time of the reduction, the maximum over the devices of
 * max(f, W/B) + max(b, G/B) + R. It is exact where all devices share one memory.
 * @param isSharded whether the feed is sharded, whose time replaces W/B
 */
export function closedFormMs(request: PlanRequest, plan: Plan, isSharded = false): number {
  const { profile, inputBytes } = request
  const { head } = profile
  // If devices divide the model, a step is at least as long as the slowest one is busy.
  if (dividesModel(plan.schedule)) {
    const busyMs = (plan.devices ?? []).map(({ computeMs, lineBytesPerMs = Number.POSITIVE_INFINITY, ...bytes }) =>
      Math.max(computeMs, bytes.receivedBytes / lineBytesPerMs, bytes.returnedBytes / lineBytesPerMs)
    )
    return Math.max(...busyMs)
  }
  const { devices = [] } = plan
  const fed = fedDevices(
    request.devices,
    devices.map(({ rows }) => rows)
  )
  const weights = profile.layers.reduce((sum, each) => sum + (each.gradientBytes > 0 ? each.weightBytes : 0), 0)
  return Math.max(
    ...devices.map((device, d) => {
      const { rows, speed, stepMs } = device
      if (stepMs === 0) return 0
      const times: readonly LayerTime[] = layerTimes(profile, plan, rows)
      const forward = times.reduce((sum, { forwardMs }) => sum + forwardMs, 0) / speed
      const whole = (times.reduce((sum, { ms }) => sum + ms, 0) + head.ms * rows) / speed
      const f = fed.findIndex(each => each.device === d)
      const reductionMs = device.computeMs - whole
      return (
        Math.max(forward, f < 0 ? 0 : feedMs(fed, f, weights, rows * inputBytes, isSharded)) +
        Math.max(whole - forward, f < 0 ? 0 : device.returnedBytes / fed[f].rate) +
        reductionMs
      )
    })
  )
}
