/** Creates the wiring for a scenario's topology. */
import type { Random } from '../engine/random.js'
import { type OverlayRun, OverlayWiring } from '../overlay/overlay-wiring.js'
import type { Scenario } from '../scenario.js'
import type { Topology } from '../topology.js'
import { FixedWiring } from './fixed.js'
import type { Wiring } from './wiring.js'

/** Default heartbeat interval of the overlay, in latencies. */
const HEARTBEAT_LATENCIES = 10

/** What a wiring works with. */
export interface WiringRun extends OverlayRun {
  readonly scenario: Scenario
  readonly topology: Topology
  readonly labels: readonly string[]
}

/** Creates a custom overlay for a run. Draw random numbers from `random` only, so that the run is reproducible. */
export type WiringFactory = (run: WiringRun, random: Random) => Wiring

/** @param isChecked whether the overlay's invariants are checked after every event */
export function createWiring(run: WiringRun, isChecked: boolean, random: Random): Wiring {
  const { scenario, topology, population, transport, algorithm, labels } = run
  const { links } = topology
  // Algorithms without sessions run on the tree of shortest paths over the links.
  if (links === undefined || algorithm.connect === undefined) {
    return new FixedWiring(topology, population, transport, algorithm)
  }
  const { degree, tabs, tabHosts, tabLinks, latency, heartbeat = HEARTBEAT_LATENCIES * latency } = scenario
  return new OverlayWiring({ degree, tabs, tabHosts, tabLinks, heartbeat, links, keys: labels, random, isChecked }, run)
}
