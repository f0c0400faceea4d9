/**
 * The planner: of all ways to take a minibatch through a model within the device's memory, the fastest: every microbatch size and
 * place of the stash is tried. (Times are added up: the backends at hand compute and copy on one thread.)
 */
import { backwardBytes, planLayerwise } from './plan-layerwise.js'
import { planBaseline } from './plan-resident.js'
import type { Plan, PlanRequest } from './task.js'

/**
 * @returns the fastest plan, or the layer that needs the most where nothing fits
 */
export function makePlan(task: PlanRequest): Plan | { readonly tooLarge: string; readonly needsBytes: number } {
  const { batch, fixed, profile } = task
  const plans: Plan[] = []
  for (const microbatch of fixed.microbatch ? [Math.min(batch, fixed.microbatch)] : halves(batch)) {
    if (fixed.schedule === undefined || fixed.schedule.startsWith('baseline')) {
      const schedule = fixed.schedule ?? 'baseline-ag'
      const plan = planBaseline(task, schedule, schedule === 'baseline' ? batch : microbatch)
      if (plan && fixed.stash === undefined) plans.push(plan)
    }
    if (fixed.schedule?.startsWith('baseline')) continue
    for (const stash of fixed.stash ? [fixed.stash] : (['device', 'host'] as const)) {
      const plan = planLayerwise(task, fixed.schedule ?? 'l2l-p', microbatch, stash)
      if (plan) plans.push(plan)
    }
  }
  if (plans.length > 0) return plans.reduce((best, plan) => (plan.stepMs < best.stepMs ? plan : best))
  const least = profile.layers.map(layer => layer.weightBytes + backwardBytes(layer, 0, 1, false))
  const needsBytes = Math.max(...least)
  return { tooLarge: profile.layers[least.indexOf(needsBytes)].name, needsBytes }
}

/** batch, batch/2, … 1, rounded up. */
function halves(batch: number): number[] {
  const sizes = [batch]
  for (let size = batch; size > 1; ) {
    size = Math.ceil(size / 2)
    sizes.push(size)
  }
  return sizes
}
