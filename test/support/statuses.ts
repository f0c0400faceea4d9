/** Statuses with defaults, for tests of the network view. */
import type { NetworkStatus } from '../../src/view/index.js'

export const PEERS = ['12D3KooWA', '12D3KooWB', '12D3KooWC', '12D3KooWD', '12D3KooWE'] as const
export const [A, B, C, D, E] = PEERS

export function status(given: Partial<NetworkStatus> = {}): NetworkStatus {
  return {
    version: 1,
    incarnation: 1,
    started: 1000,
    uptime: 1,
    interval: 1000,
    inputs: 10,
    inputsPerSecond: 10,
    loss: 0.5,
    accuracy: 0.75,
    sent: 1,
    received: 2,
    neighbours: [],
    predictor: { updates: 1, origin: A, incarnation: 1 },
    trail: ['00000001'],
    adopted: 0,
    discarded: 0,
    ended: false,
    ...given
  }
}
