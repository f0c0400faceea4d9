/**
 * Names of peers and of windows, and buckets of histograms. A separate module, so that the command line and the page can use it
 * without the rest of the view.
 */

/**
 * Names that an owner may give a peer: printable characters, without controls that change the text direction.
 */
export const NAME_PATTERN = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,40}$/u

/** The name of a window, given in seconds, in metrics and on pages: `90s`, `15m`, `1h`, `7d`. */
export function windowName(seconds: number): string {
  const units = { d: 86_400, h: 3600, m: 60 }
  const unit = (Object.keys(units) as (keyof typeof units)[]).find(name => seconds % units[name] === 0)
  return unit === undefined ? `${seconds}s` : `${seconds / units[unit]}${unit}`
}

/** Buckets of the histograms: half octaves of the loss (of a regression, 1 − R²) from 2^-10, and octaves of inputs per second from 1/4. */
export const BUCKETS = 32
const LEAST_LOSS = -10
const LEAST_RATE = -2

export const lossBucket = (loss: number): number => bounded(2 * (Math.log2(loss) - LEAST_LOSS))
export const rateBucket = (perSecond: number): number => bounded(Math.log2(perSecond) - LEAST_RATE)

/** Lower bounds, the second in inputs per second. The first bucket is open below, the last one above. */
export const lossOfBucket = (bucket: number): number => 2 ** (bucket / 2 + LEAST_LOSS)
export const rateOfBucket = (bucket: number): number => 2 ** (bucket + LEAST_RATE)

/** The logarithm of 0 is −Infinity. */
const bounded = (place: number) => Math.min(BUCKETS - 1, Math.max(0, Math.floor(place)))
