/** The option `batch`: a number, a range in which the peers choose b themselves, or `auto`. */
import { type BatchRange, OptionError } from '../learner/index.js'

/** The option: a number, MIN..MAX, or `auto`. */
export type BatchOption = number | `${number}..${number}` | 'auto'

/** The range of `auto`. */
const AUTO_BATCH: BatchRange = { min: 32, max: 4096 }
/** The largest b of a range: a count of gradients up to it is exact in float32. */
const MAX_RANGE = 2 ** 20
/** The largest fixed b: a peer accepts sums of eight times as many gradients. */
const MAX_BATCH = 2 ** 37

/** Least and largest b; the same number if b is fixed. @throws OptionError */
export function batchRange(batch: BatchOption): BatchRange {
  if (batch === 'auto') return AUTO_BATCH
  const [min, max = min, ...rest] = String(batch).split('..').map(Number)
  if (rest.length > 0 || !(Number.isSafeInteger(min) && min >= 1)) {
    throw new OptionError(`batch must be a whole number of gradients, at least 1, MIN..MAX or auto, not ${batch}`)
  }
  if (min > MAX_BATCH) throw new OptionError(`batch must be at most ${MAX_BATCH}, not ${batch}`)
  if (max === min) return { min, max }
  if (!Number.isSafeInteger(max) || max < min || max > MAX_RANGE) {
    throw new OptionError(`batch ${batch}: the range must be ascending, and end at ${MAX_RANGE} or less`)
  }
  return { min, max }
}
