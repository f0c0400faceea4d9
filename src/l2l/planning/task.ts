/** What the planner is asked, and what it answers. */
import type { Precision, Schedule, StashLocation } from '../executor/types.js'
import type { DeviceProfile } from './profile.js'

export interface PlanRequest {
  readonly profile: DeviceProfile
  /** Bytes a sample of the model's input. */
  readonly inputBytes: number
  /** Samples a minibatch. */
  readonly batch: number
  /** Most bytes on the device. */
  readonly deviceMemory: number
  readonly precision: Precision
  /** What has been decided already. */
  readonly fixed: { readonly schedule?: Schedule; readonly microbatch?: number; readonly stash?: StashLocation }
}

export interface Plan {
  readonly schedule: Schedule
  readonly microbatch: number
  readonly stash: StashLocation
  /** Numbers of the layers that keep their insides. */
  readonly keeps: readonly number[]
  /** Numbers of the layers whose weights stay on the device from the forward to the backward pass. */
  readonly resident: readonly number[]
  /** Expected: the most on the device, the most of stashed tensors on the host, and the time of a step once all layers take part. */
  readonly deviceBytes: number
  readonly stashBytes: number
  readonly stepMs: number
  /** What each layer, and last the head, has of that time, steps that leave it out counted in, and the updates after which it takes part. */
  readonly parts: readonly { readonly ms: number; readonly from: number }[]
}

/** Expected mean time of a run's steps, the first one left out, as the layers come in. */
export function meanStepMs({ parts }: Pick<Plan, 'parts'>, steps: number): number {
  const counted = Math.max(1, steps - 1)
  return parts.reduce((sum, { ms, from }) => sum + ms * Math.max(0, Math.min(1, (steps - from) / counted)), 0)
}

/** The times of a plan, from those of its layers and that of the head. */
export function stepTimes(layers: Plan['parts'], headMs: number): Pick<Plan, 'stepMs' | 'parts'> {
  const parts = [...layers, { ms: headMs, from: 0 }]
  return { stepMs: parts.reduce((sum, { ms }) => sum + ms, 0), parts }
}
