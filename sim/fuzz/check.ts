/** One trial with the exact learner: what is wrong with it, if anything. */
import { exactInvariants } from '../checkers/index.js'
import { type SimulateOptions, simulate } from '../simulate.js'
import type { Trial } from '../testing/trials.js'
import { CountingInputs, countingRecipe } from './counting.js'

/**
 * Runs a trial with inputs and a rule that count how often each gradient is used, and on until it has settled.
 * @param options such as an own `node` or `topology`
 * @returns the violation, `property: what happened`; undefined if there is none
 */
export function checkExactly(
  { scenario, faults }: Trial,
  options: Pick<SimulateOptions, 'node' | 'topology' | 'observer'> = {}
): string | undefined {
  const inputs = new CountingInputs(scenario.inputs)
  const exact = { inputs, recipe: countingRecipe, invariants: exactInvariants(inputs), quiesce: true }
  try {
    return simulate(scenario, { ...options, ...exact, faults }).violations[0]
  } catch (error) {
    // The node itself failed: as bad as any property that does not hold, and to be shrunk alike.
    return `error: ${(error as Error).message}`
  }
}
