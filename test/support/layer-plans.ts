/** What tests do with the layers of a network. */
import fc from 'fast-check'
import { dividesModel, type LayerPlan, SCHEDULES } from '../../src/l2l/executor/types.js'

/** The schedules of a device that executes all layers. */
export const WHOLE_SCHEDULES = SCHEDULES.filter(schedule => !dividesModel(schedule))

/** Plans of at most so many layers. */
export function layerPlans(maxLength: number): fc.Arbitrary<readonly LayerPlan[]> {
  const plan = fc.record({
    activations: fc.constantFrom('recomputed' as const, 'device' as const, 'host' as const),
    outputs: fc.constantFrom('stash' as const, 'device' as const, 'recomputed' as const),
    keptIn: fc.integer({ min: 1, max: 3 }),
    isResident: fc.boolean()
  })
  return fc.array(plan, { maxLength })
}

/** The same plan for some layers. */
export function layersWith(indices: readonly number[], plan: LayerPlan): readonly LayerPlan[] {
  return Array.from({ length: Math.max(-1, ...indices) + 1 }, (_, l) => (indices.includes(l) ? plan : {}))
}
