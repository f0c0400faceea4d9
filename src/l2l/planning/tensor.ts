/**
 * The expected step under tensor parallelism: a device executes its share of each block, which is measured as such, and all of the other
 * layers, and sums the addends of all devices in forward and backward passes.
 */
import { modelShare } from '../../nn/split.js'
import type { Model } from '../../nn/types.js'
import { type DeviceProfile, type LayerProfile, profileModel } from './profile.js'
import type { DevicePlan, GroupDevice, Plan, PlanRequest } from './types.js'

/** Why the devices and layers do not allow the schedule. @returns undefined if they do */
export function tensorFault({ layers }: Model, devices: readonly GroupDevice[]): string | undefined {
  const { length } = devices
  if (length === 1) return 'divides the model among devices: add workers=2 or more'
  if (devices.some(({ lineBytesPerMs }) => lineBytesPerMs !== undefined))
    return 'needs devices of this machine: give their speeds alone, or use l2l-p'
  if (layers.every(({ split }) => split === undefined))
    return 'divides transformer blocks, and the model has none: use l2l-p'
  const small = layers.find(({ split }) => split !== undefined && split.units < length)
  if (small !== undefined)
    return `divides each block among ${length} workers, and layer ${small.name} has ${small.split?.units} heads or units: use fewer workers, or l2l-p`
  return undefined
}

/**
 * Measures the largest share.
 * @param whole profile of the model
 */
export function profileShare(model: Model, whole: DeviceProfile, devices: number): DeviceProfile {
  const share = modelShare(model, { device: devices - 1, devices }, addend => addend)
  const isTimed = whole.layers.some(({ forwardMs }) => forwardMs > 0)
  const measured = profileModel(share, isTimed)
  const layers = measured.layers.map((layer, l): LayerProfile => {
    if (model.layers[l].split === undefined) return whole.layers[l]
    // Other programs may have delayed one of the measurements: a share takes at most the whole time, and at least its part of it.
    const part = share.layers[l].macs / model.layers[l].macs
    const msOf = (field: 'forwardMs' | 'vjpMs' | 'savedVjpMs') => {
      const ms = whole.layers[l][field]
      return Math.min(ms, Math.max(part * ms, layer[field]))
    }
    return { ...layer, forwardMs: msOf('forwardMs'), vjpMs: msOf('vjpMs'), savedVjpMs: msOf('savedVjpMs') }
  })
  return { ...whole, layers }
}

/**
 * Adds the sums to the plan of a share, and what each device does.
 * @param share profile of the share
 */
export function inTensorGroup(request: PlanRequest, share: DeviceProfile, plan: Plan): Plan {
  const { profile, devices, batch } = request
  const { bytesPerMs, sumBytesPerMs } = profile
  const isSplit = share.layers.map((layer, l) => layer !== profile.layers[l])
  const split = share.layers.filter((_, l) => isSplit[l])
  // Outputs, and gradients with respect to inputs, leave the device and return; each device writes its addend and sums those of all.
  const summed = split.reduce((sum, layer) => sum + layer.share * 2 * batch * layer.outputBytes, 0)
  const sumMs = summed * (2 / bytesPerMs + (1 + devices.length) / sumBytesPerMs)
  const returnedBytes = split.reduce((sum, { gradientBytes }) => sum + gradientBytes, 0)
  // The first device puts the gradients of all shares together.
  const mergeMs = (devices.length * returnedBytes) / sumBytesPerMs
  const slowest = Math.min(...devices.map(({ speed }) => speed))
  const stepMs = plan.stepMs / slowest + sumMs + mergeMs
  const parts = [...plan.parts, { ms: stepMs - plan.stepMs, from: 0 }]
  const all = devices.map(
    (device, d): DevicePlan => ({
      ...device,
      rows: batch,
      computeMs: plan.stepMs / device.speed + sumMs + (d === 0 ? mergeMs : 0),
      stepMs,
      receivedBytes: 0,
      returnedBytes: d === 0 ? 0 : returnedBytes
    })
  )
  return { ...plan, stepMs, parts, devices: all }
}
