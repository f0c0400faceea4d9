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
