/** Stretches of time in which something fails, at random. */
import type { Random } from '../engine/random.js'

/** In virtual milliseconds. */
export interface Spell {
  readonly from: number
  readonly to: number
}

/**
 * Spells that come and go at random.
 * @param share of the time, on average
 * @param length draws how long a spell is
 * @param mean of the lengths
 */
export function* outages(
  share: number,
  mean: number,
  end: number,
  random: Random,
  length: () => number
): Generator<Spell> {
  if (share === 0) return
  const between = (mean * (1 - share)) / share
  for (let time = random.exponential(between); time < end; time += random.exponential(between)) {
    const from = time
    time += length()
    yield { from, to: Math.min(time, end) }
  }
}
