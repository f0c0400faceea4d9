/** Suggestions for misspelt names. */

/** The candidate with the smallest edit distance, if it is small enough for a typing error. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let least = Math.ceil(word.length / 3) + 1
  for (const candidate of candidates) {
    const distance = editDistance(word, candidate)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]
}
