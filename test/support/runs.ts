/** Numbers of runs of the longest property tests. */
const isLong = process.env.ADMB_LONG_TESTS !== undefined

/** An eighth of the number, or all with `ADMB_LONG_TESTS=1`. */
export function share(count: number): number {
  return isLong ? count : Math.ceil(count / 8)
}
