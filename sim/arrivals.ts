/** When inputs arrive at each node and when its periods end: aligned or with offsets, at equal or log-normal rates. */
import { portableExp } from '../src/learner/exp.js'
import type { Random } from './engine/random.js'
import type { Scenario } from './scenario.js'

export interface Arrivals {
  /** Virtual milliseconds between two inputs of each node. */
  readonly intervals: Float64Array
  /** Time of each node's first input. */
  readonly firstInputs: Float64Array
  /** Time at which each node's first period ends. */
  readonly firstTicks: Float64Array
}

export function drawArrivals(scenario: Scenario, random: Random): Arrivals {
  const { nodes, interval, period, speedSpread, phases, warmup } = scenario
  const speedDraws = random.fork('speeds')
  const speeds = Float64Array.from({ length: nodes }, () => portableExp(speedSpread * speedDraws.normal()))
  const mean = speeds.reduce((sum, speed) => sum + speed, 0) / nodes
  const intervals = speeds.map(speed => (speedSpread === 0 ? interval : (interval * mean) / speed))
  const offsetDraws = random.fork('offsets')
  const phase = (): number => (phases === 'aligned' ? 1 : offsetDraws.next())
  return {
    intervals,
    firstInputs: intervals.map(each => warmup + each * phase()),
    firstTicks: intervals.map(() => period * phase())
  }
}
