/** The merges of a subword tokenizer: the most frequent pair of adjacent pieces, repeatedly. */

export interface CountedWord {
  readonly pieces: readonly string[]
  /** How often the word occurs. */
  readonly count: number
}

export interface Merge {
  readonly left: string
  readonly right: string
  readonly merged: string
}

/** A pair that occurs once is not merged. */
const LEAST_COUNT = 2

/**
 * @param join the piece that replaces a pair
 * @param limit maximum number of distinct new pieces
 * @returns the merges in their order; ties are broken by the pieces, in code unit order
 */
export function mergePairs(
  words: readonly CountedWord[],
  join: (left: string, right: string) => string,
  limit: number
): Merge[] {
  const merges: Merge[] = []
  const made = new Set<string>()
  const current = words.map(({ pieces }) => [...pieces])
  const pairs = new PairCounts()
  for (const [word, pieces] of current.entries()) pairs.add(pieces, word, words[word].count)
  while (made.size < limit) {
    const best = pairs.takeBest()
    if (best === undefined || best.count < LEAST_COUNT) break
    const merge = { left: best.left, right: best.right, merged: join(best.left, best.right) }
    merges.push(merge)
    made.add(merge.merged)
    for (const word of best.words) {
      const before = current[word]
      pairs.add(before, word, -words[word].count)
      current[word] = mergedIn(before, merge)
      pairs.add(current[word], word, words[word].count)
    }
  }
  return merges
}

function mergedIn(pieces: readonly string[], { left, right, merged }: Merge): string[] {
  const result: string[] = []
  for (let i = 0; i < pieces.length; i++) {
    if (pieces[i] === left && pieces[i + 1] === right) {
      result.push(merged)
      i++
    } else result.push(pieces[i])
  }
  return result
}

interface Pair {
  readonly left: string
  readonly right: string
  count: number
  /** The words that have or had the pair. */
  readonly words: Set<number>
  /** The count with which the heap holds the pair; 0 if it does not. */
  queued: number
}

/** Counts of pairs, with a heap of upper bounds: a count that has fallen is corrected when the pair reaches the top. */
class PairCounts {
  readonly #pairs = new Map<string, Map<string, Pair>>()
  readonly #heap: Pair[] = []
  /** Counts in the heap, beside the pairs. */
  readonly #keys: number[] = []

  /** Counts the pairs of a word. @param count negative to remove them */
  add(pieces: readonly string[], word: number, count: number): void {
    for (let i = 0; i + 1 < pieces.length; i++) {
      const pair = this.#pair(pieces[i], pieces[i + 1])
      pair.count += count
      if (count < 0) continue
      pair.words.add(word)
      if (pair.count > pair.queued) this.#push(pair)
    }
  }

  /** Removes the most frequent pair; undefined if there is none. */
  takeBest(): (Omit<Pair, 'words'> & { readonly words: readonly number[] }) | undefined {
    for (;;) {
      const [pair] = this.#heap
      const [key] = this.#keys
      if (pair === undefined) return undefined
      this.#pop()
      // An entry that a later one has replaced, or a count that has fallen.
      if (key !== pair.queued) continue
      pair.queued = 0
      if (pair.count === key) return { ...pair, words: [...pair.words] }
      if (pair.count > 0) this.#push(pair)
    }
  }

  #pair(left: string, right: string): Pair {
    let rights = this.#pairs.get(left)
    if (rights === undefined) {
      rights = new Map()
      this.#pairs.set(left, rights)
    }
    let pair = rights.get(right)
    if (pair === undefined) {
      pair = { left, right, count: 0, words: new Set(), queued: 0 }
      rights.set(right, pair)
    }
    return pair
  }

  #push(pair: Pair): void {
    pair.queued = pair.count
    let at = this.#heap.length
    this.#heap.push(pair)
    this.#keys.push(pair.count)
    while (at > 0 && this.#isBefore(at, (at - 1) >> 1)) {
      this.#swap(at, (at - 1) >> 1)
      at = (at - 1) >> 1
    }
  }

  #pop(): void {
    const last = this.#heap.length - 1
    this.#swap(0, last)
    this.#heap.pop()
    this.#keys.pop()
    for (let at = 0; ; ) {
      let next = 2 * at + 1
      if (next >= last) return
      if (next + 1 < last && this.#isBefore(next + 1, next)) next++
      if (!this.#isBefore(next, at)) return
      this.#swap(at, next)
      at = next
    }
  }

  #isBefore(a: number, b: number): boolean {
    if (this.#keys[a] !== this.#keys[b]) return this.#keys[a] > this.#keys[b]
    const [one, other] = [this.#heap[a], this.#heap[b]]
    return one.left === other.left ? one.right < other.right : one.left < other.left
  }

  #swap(a: number, b: number): void {
    const [heap, keys] = [this.#heap, this.#keys]
    ;[heap[a], heap[b]] = [heap[b], heap[a]]
    ;[keys[a], keys[b]] = [keys[b], keys[a]]
  }
}
