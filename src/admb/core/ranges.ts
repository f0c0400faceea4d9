/** Sets of input numbers: sorted, disjoint, half-open intervals [first, end, first, end, …]. */
export type Ranges = readonly number[]

/** The union with [first, end). */
export function withRange(ranges: Ranges, first: number, end: number): Ranges {
  const merged: number[] = []
  let [from, to] = [first, end]
  let isPlaced = false
  for (let i = 0; i < ranges.length; i += 2) {
    const [a, b] = [ranges[i], ranges[i + 1]]
    if (b < from) merged.push(a, b)
    else if (a > to) {
      if (!isPlaced) merged.push(from, to)
      isPlaced = true
      merged.push(a, b)
    } else {
      from = Math.min(from, a)
      to = Math.max(to, b)
    }
  }
  if (!isPlaced) merged.push(from, to)
  return merged
}

/** The numbers in `ranges` that are not in `removed`. */
export function without(ranges: Ranges, removed: Ranges): Ranges {
  let rest = ranges
  for (let i = 0; i < removed.length; i += 2) rest = withoutRange(rest, removed[i], removed[i + 1])
  return rest
}

function withoutRange(ranges: Ranges, first: number, end: number): Ranges {
  const rest: number[] = []
  for (let i = 0; i < ranges.length; i += 2) {
    const [a, b] = [ranges[i], ranges[i + 1]]
    if (a < first) rest.push(a, Math.min(b, first))
    if (b > end) rest.push(Math.max(a, end), b)
  }
  return rest.length === ranges.length && rest.every((value, i) => value === ranges[i]) ? ranges : rest
}

export function isIn(ranges: Ranges, number: number): boolean {
  for (let i = 0; i < ranges.length; i += 2) if (ranges[i] <= number && number < ranges[i + 1]) return true
  return false
}

export function sizeOf(ranges: Ranges): number {
  let size = 0
  for (let i = 0; i < ranges.length; i += 2) size += ranges[i + 1] - ranges[i]
  return size
}
