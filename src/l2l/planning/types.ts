/** The planner's request and its plan. */
import type { LayerPlan, Schedule, StashLocation } from '../executor/types.js'
import type { DeviceProfile } from './profile.js'

/** A device of a group. */
export interface GroupDevice {
  /** In multiples of the speed of the device that was measured. */
  readonly speed: number
  /** Bytes per millisecond of its line, in each direction. @default it shares the memory of this machine */
  readonly lineBytesPerMs?: number
}

/** What a device of a group does in a step. */
export interface DevicePlan extends GroupDevice {
  /** Samples of its share of the minibatch. */
  readonly rows: number
  /** Time without waiting for its line, and with it. */
  readonly computeMs: number
  readonly stepMs: number
  /** Bytes over its line: rows and weights to it, gradients back. */
  readonly receivedBytes: number
  readonly returnedBytes: number
}

export interface PlanRequest {
  readonly profile: DeviceProfile
  /** Bytes per sample of the model's input. */
  readonly inputBytes: number
  /** Bytes of each layer's gradient over a line. @default those of its numbers */
  readonly codedBytes?: readonly number[]
  /** Samples per minibatch, of all devices. */
  readonly batch: number
  /** The devices that share a minibatch. The first one sums the gradients, unless the parameter server does. */
  readonly devices: readonly GroupDevice[]
  /** Limit of the bytes on each device. */
  readonly deviceMemory: number
  /** Limit of the bytes of saved activations on the host, of each device. */
  readonly hostMemory: number
  /** The profile of a device's share under tensor parallelism, measured when it is asked for. @default not possible */
  readonly tensor?: () => DeviceProfile
  /** Options that the user has set. */
  readonly fixed: { readonly schedule?: Schedule; readonly microbatch?: number; readonly stash?: StashLocation }
}

export interface Plan {
  readonly schedule: Schedule
  readonly microbatch: number
  readonly stash: StashLocation
  /** By the index of the layer. */
  readonly layers: readonly LayerPlan[]
  /**
   * Expected peak bytes on the device and of stashed tensors on the host, and the time of a step once all layers take
   * part.
   */
  readonly deviceBytes: number
  readonly stashBytes: number
  readonly stepMs: number
  /**
   * The mean time of each layer and, last, of the head, including steps that skip it; and the updates after which it
   * takes part. A group adds the rest of its time.
   */
  readonly parts: readonly { readonly ms: number; readonly from: number }[]
  /** First layer of each chunk of a pipeline's stages, and the share of their time in which they wait for each other. */
  readonly pipeline?: {
    readonly cut: readonly number[]
    readonly microbatches: number
    /** Microbatches of an operation, which pass each layer together. */
    readonly group: number
    readonly bubble: number
    /** The same in closed form, with stages that take equal times. */
    readonly closedForm: number
  }
  /** With several devices, those of the group; `deviceBytes` and `stashBytes` are then those of the one with the largest share. */
  readonly devices?: readonly DevicePlan[]
}

/** A plan as the commands print it: the indices of the layers by what is done with them. */
export function planJson({ layers, ...plan }: Plan) {
  const where = (matches: (layer: LayerPlan) => boolean | undefined) =>
    layers.flatMap((layer, l) => (matches(layer) ? [l] : []))
  return {
    ...plan,
    keeps: where(({ activations }) => activations === 'device'),
    offloads: where(({ activations }) => activations === 'host'),
    unstashed: where(({ outputs }) => outputs === 'recomputed'),
    nested: where(({ keptIn = 1 }) => keptIn > 1),
    resident: where(({ isResident }) => isResident),
    deviceOutputs: where(({ outputs }) => outputs === 'device')
  }
}

/** Expected mean time of a run's steps except the first, as layers are added. */
export function meanStepMs({ parts }: Pick<Plan, 'parts'>, steps: number): number {
  const measured = Math.max(1, steps - 1)
  return parts.reduce((sum, { ms, from }) => sum + ms * Math.max(0, Math.min(1, (steps - from) / measured)), 0)
}

/** The time fields of a plan, from the times of its layers and its head. */
export function stepTimes(layers: Plan['parts'], headMs: number): Pick<Plan, 'stepMs' | 'parts'> {
  const parts = [...layers, { ms: headMs, from: 0 }]
  return { stepMs: parts.reduce((sum, { ms }) => sum + ms, 0), parts }
}
