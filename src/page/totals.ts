/** The network as a whole: means over all inputs of all peers. */
import type { PeerRow } from '../view/types.js'

export interface Totals {
  readonly inputs: number
  readonly inputsPerSecond: number
  /** Of the best predictor. */
  readonly updates: number
  readonly loss: number | undefined
  readonly accuracy: number | undefined
  /** Bytes of frames sent by all. */
  readonly sent: number
}

export function totalsOf(peers: readonly PeerRow[]): Totals {
  const sum = (rows: readonly PeerRow[], of: (row: PeerRow) => number) =>
    rows.reduce((total, row) => total + of(row), 0)
  const mean = (of: (row: PeerRow) => number | undefined) => {
    const known = peers.filter(row => of(row) !== undefined && row.inputs > 0)
    const inputs = sum(known, row => row.inputs)
    return inputs === 0 ? undefined : sum(known, row => row.inputs * (of(row) as number)) / inputs
  }
  return {
    inputs: sum(peers, row => row.inputs),
    inputsPerSecond: sum(peers, row => (row.alive ? row.inputsPerSecond : 0)),
    updates: peers.reduce((most, row) => Math.max(most, row.predictor.updates), 0),
    loss: mean(row => row.loss),
    accuracy: mean(row => row.accuracy),
    sent: sum(peers, row => row.sent)
  }
}
