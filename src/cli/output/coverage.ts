/** What a checkpoint lacks of the model, and what it has besides it, on stderr. */

import { listed } from '../../data/index.js'
import type { Coverage } from '../../nn/weights/exchange.js'
import { warn } from './output.js'

export function showCoverage(coverage: Pick<Coverage, 'missing' | 'unneeded'> | undefined): void {
  const { missing, unneeded } = coverage ?? { missing: [], unneeded: [] }
  if (missing.length > 0) warn(`new weights, which the checkpoint lacks: ${listed(missing)}`)
  if (unneeded.length > 0) warn(`tensors of the checkpoint that the model does not need: ${listed(unneeded)}`)
}
