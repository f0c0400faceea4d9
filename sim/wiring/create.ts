/** The wiring that a scenario asks for. */
import type { Random } from '../engine/random.js'
import { type OverlayRun, OverlayWiring } from '../overlay/overlay-wiring.js'
import type { Scenario } from '../scenario.js'
import type { Topology } from '../topology.js'
import { FixedWiring } from './fixed.js'
import type { Wiring } from './wiring.js'

/** Heartbeats of the overlay in latencies, where the scenario does not say. */
const HEARTBEAT_LATENCIES = 10

export interface WiringRun extends OverlayRun {
  readonly scenario: Scenario
  readonly topology: Topology
  readonly labels: readonly string[]
}

/** Makes an own overlay of what a run consists of. Random decisions are to be taken from `random` alone. */
export type WiringFactory = (run: WiringRun, random: Random) => Wiring

/** @param isChecked whether the overlay's invariants are looked at after every event */
export function createWiring(run: WiringRun, isChecked: boolean, random: Random): Wiring {
  const { scenario, topology, population, transport, algorithm, labels } = run
  const { links } = topology
  // What knows no sessions runs on the tree of shortest ways over the links.
  if (links === undefined || algorithm.connect === undefined) {
    return new FixedWiring(topology, population, transport, algorithm)
  }
  const { degree, latency, heartbeat = HEARTBEAT_LATENCIES * latency } = scenario
  return new OverlayWiring({ degree, heartbeat, links, keys: labels, random, isChecked }, run)
}
