/** What a run's text output says of its regret beside the table: against what, where, and what theory promised. */
import type { RunResult } from '../../../sim/index.js'
import { formatNumber } from '../output/output.js'

export function accountLines(result: RunResult): string[] {
  const { inputs, goodInputs, goodRegret, regretByNode } = result
  const { min, median, max } = regretByNode
  return [
    `comparator   ${comparatorOf(result)}, average loss ${result.comparatorLoss.toFixed(5)}`,
    `by node      regret from ${formatNumber(min)} to ${formatNumber(max)}, median ${formatNumber(median)}`,
    `good times   ${formatNumber(goodInputs)} of ${formatNumber(inputs)} inputs, regret ${formatNumber(goodRegret)}`,
    `bound        ${boundOf(result)}`
  ]
}

function comparatorOf({ comparator, gradientNorm }: RunResult): string {
  if (comparator === 'known') return 'the best predictor of the stream'
  return `the best predictor in hindsight (gradient ${gradientNorm?.toExponential(1)})`
}

function boundOf({ algorithm, bound, boundHolds }: RunResult): string {
  if (bound === undefined) return 'none: the theorems do not speak of such a run'
  const of = algorithm === 'admb' ? 'the regret in good times' : 'the regret'
  return `${formatNumber(bound)} on ${of}, in expectation: ${boundHolds ? 'holds' : 'does not hold in this run'}`
}
