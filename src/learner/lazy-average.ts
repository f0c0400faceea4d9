/**
 * A running average that an update changes only where it changes the parameters. A predictor contains the lags l and the retention
 * r, from which the average follows: w̄ = w − r·l. An update of w by Δ gives l ← l + Δ/r and then r ← (1 − γ)·r, which is
 * w̄ ← w̄ + γ·(w − w̄) in other numbers. When r falls below 2⁻⁶⁴, it becomes a factor of the lags, and 1 again.
 */
import { copyBlock, newBlock } from '../base/memory.js'
import type { WeightedAveraging } from './averaging.js'
import type { Averaging, Blocks } from './types.js'

const SMALLEST_RETENTION = 2 ** -64

/** The same average in lazy form. Without an average, predictors contain nothing of it. */
export function lazyAveraging({ name, description, weight }: WeightedAveraging): Averaging {
  if (name === 'none') {
    return {
      name,
      description,
      isLocal: true,
      average: () => [],
      layout: () => ({ blocks: [] }),
      contain: () => [],
      read: (_, parameters) => parameters
    }
  }
  return {
    name,
    description: `${description} lazy`,
    isLocal: true,
    layout: ({ blocks }) => ({
      blocks: [...blocks.map(block => ({ ...block, name: `${block.name}.lag` })), { name: 'retention', length: 2 }]
    }),
    contain: (average, parameters) => [
      ...parameters.map((block, k) => block.map((w, i) => w - average[k][i])),
      retentionBlock(1)
    ],
    average(previous, parameters, updates, before, least) {
      const retention = retentionOf(previous)
      const next = retention * (1 - weight(updates, least))
      const isSmall = next < SMALLEST_RETENTION
      const lags = parameters.map((block, k) => {
        const lag = copyBlock(previous[k])
        addDifference(lag, block, before[k], retention)
        if (isSmall) for (let i = 0; i < lag.length; i++) lag[i] *= next
        return lag
      })
      return [...lags, retentionBlock(isSmall ? 1 : next)]
    },
    read: (contained, parameters) =>
      parameters.map((block, k) => {
        const average = newBlock(block.length)
        readElements(contained[k], block, retentionOf(contained), 0, block.length, average)
        return average
      }),
    readElements: (contained, [weights], from, to, into) =>
      readElements(contained[0], weights, retentionOf(contained), from, to, into)
  }
}

function readElements(
  lag: Float32Array,
  weights: Float32Array,
  retention: number,
  from: number,
  to: number,
  into: Float32Array
): void {
  for (let i = from; i < to; i++) into[i] = weights[i] - retention * lag[i]
}

/** r as the sum of two float32 numbers. */
function retentionBlock(retention: number): Float32Array {
  const high = Math.fround(retention)
  return Float32Array.of(high, retention - high)
}

/** r of what a predictor contains. */
function retentionOf(contained: Blocks): number {
  const [high, low] = contained[contained.length - 1]
  return high + low
}

function addDifference(lag: Float32Array, now: Float32Array, before: Float32Array, retention: number): void {
  for (let i = 0; i < lag.length; i++) if (now[i] !== before[i]) lag[i] += (now[i] - before[i]) / retention
}
