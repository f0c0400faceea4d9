/** Who takes how many microbatches: as many as its speed says, so that all are done at the same time (HetPipe's rule). */

/** Weight of the newest measurement of a speed. */
const SMOOTHING = 0.3
/** Shares stay as they are unless others would be that much faster: sums then keep their order. */
const REBALANCE_THRESHOLD = 0.9

export class LoadBalancer {
  /** Milliseconds a microbatch takes each worker; undefined before it was measured. */
  #costs: (number | undefined)[]
  #current: readonly number[] = []

  constructor(workers: number) {
    this.#costs = Array.from({ length: workers }, () => undefined)
  }

  /** @returns microbatches for each worker; `count` in all */
  assign(count: number): readonly number[] {
    const costs = this.#estimates()
    const best = divide(count, costs)
    const isSame = this.#current.length === costs.length && sum(this.#current) === count
    if (!isSame || makespan(best, costs) < REBALANCE_THRESHOLD * makespan(this.#current, costs)) this.#current = best
    return this.#current
  }

  record(worker: number, microbatches: number, ms: number): void {
    if (microbatches === 0) return
    const before = this.#costs[worker]
    const now = ms / microbatches
    this.#costs[worker] = before === undefined ? now : before + SMOOTHING * (now - before)
  }

  remove(worker: number): void {
    this.#costs = this.#costs.filter((_, i) => i !== worker)
    this.#current = []
  }

  /** Those not measured yet are taken to be like the others. */
  #estimates(): readonly number[] {
    const record = this.#costs.filter(cost => cost !== undefined)
    const usual = record.length === 0 ? 1 : sum(record) / record.length
    return this.#costs.map(cost => cost ?? usual)
  }
}

/**
 * Each microbatch goes to who would be done with it first; of equals to the last, as the first has the reduction as well. The
 * first, who reduces, has one at least.
 */
function divide(count: number, costs: readonly number[]): readonly number[] {
  const shares = costs.map((_, worker) => (worker === 0 ? 1 : 0))
  for (let i = 1; i < count; i++) {
    let best = 0
    for (const [worker, cost] of costs.entries()) {
      if ((shares[worker] + 1) * cost <= (shares[best] + 1) * costs[best]) best = worker
    }
    shares[best]++
  }
  return shares
}

function makespan(shares: readonly number[], costs: readonly number[]): number {
  return Math.max(...shares.map((share, worker) => share * costs[worker]))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}
