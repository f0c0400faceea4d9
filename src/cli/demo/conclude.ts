/** The demo's result: whether all peers agree, compared with training on the same data without a network. */
import { CodedError } from '../../base/errors.js'
import { formatNumber, print, printJson } from '../output/output.js'
import type { PeerObject } from '../peer/attend.js'
import type { Cluster } from './cluster.js'
import { type Comparison, pooled } from './reference.js'
import { AGREE_MS, type Stage } from './stage.js'

/** The peers did not converge to one predictor. */
export class DisagreementError extends CodedError {
  static override readonly code = 'ERR_DISAGREEMENT'
}

/** Prints the result. @throws DisagreementError */
export function conclude(
  json: boolean,
  { serial, isolated }: Comparison,
  stage: Stage,
  cluster: Cluster,
  start: number
): void {
  const peers = cluster.peers.filter((peer): peer is PeerObject => peer !== undefined)
  const together = pooled(peers)
  const seconds = (performance.now() - start) / 1000
  const { agreed, events } = stage
  const violations = cluster.violations.length
  if (json) {
    printJson({ command: 'demo', peers, agreed, cluster: together, serial, isolated, events, violations, seconds })
  } else {
    print('')
    const line = (what: string, { averageLoss, accuracy }: { averageLoss: number; accuracy?: number }) =>
      print(
        `${what.padEnd(34)} loss ${averageLoss.toFixed(4)}${accuracy === undefined ? '' : `   accuracy ${(100 * accuracy).toFixed(2)} %`}`
      )
    line('five peers together, with faults', together)
    line('one learner given every input', serial)
    line('five learners, each alone', isolated)
    const { predictor } = peers[0]
    print(
      `\n${agreed ? 'All five agree' : 'The peers do not agree'}: ${formatNumber(predictor.updates)} updates, ${seconds.toFixed(0)} s in all.`
    )
    for (const violation of cluster.violations) print(`violation: ${violation}`)
  }
  if (!agreed)
    throw new DisagreementError(`the peers did not agree within ${AGREE_MS / 1000} s of the end: please report it`)
  if (violations > 0) throw new DisagreementError(cluster.violations[0])
}
