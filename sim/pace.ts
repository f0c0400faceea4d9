/**
 * When inputs come to each node and when its periods end: all at the same instants, or each node at an offset of its own;
 * equally fast, or with log-normal speeds around the same rate in all.
 */
import type { Random } from './engine/random.js'
import type { Scenario } from './scenario.js'

export interface Pace {
  /** Virtual milliseconds between two inputs of each node. */
  readonly intervals: Float64Array
  /** Times of each node's first input and of the end of its first period. */
  readonly firstInputs: Float64Array
  readonly firstTicks: Float64Array
}

export function createPace(scenario: Scenario, random: Random): Pace {
  const { nodes, interval, period, speedSpread, phases, warmup } = scenario
  const draws = random.fork('speeds')
  const speeds = Float64Array.from({ length: nodes }, () => Math.exp(speedSpread * draws.normal()))
  const mean = speeds.reduce((sum, speed) => sum + speed, 0) / nodes
  const intervals = speeds.map(speed => (speedSpread === 0 ? interval : (interval * mean) / speed))
  const offsets = random.fork('offsets')
  const part = (): number => (phases === 'aligned' ? 1 : offsets.next())
  return {
    intervals,
    firstInputs: intervals.map(each => warmup + each * part()),
    firstTicks: intervals.map(() => period * part())
  }
}
