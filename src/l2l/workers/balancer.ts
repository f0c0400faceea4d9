/** How microbatches are divided among devices of different speeds. */

/** Weight of the latest measurement in the exponential moving average. */
const SMOOTHING = 0.3
/** Factor of a worker's cost after a step without a share. A worker that was slow in its first step so gets another share. */
const FORGETTING = 0.95
/** Shares change only if the step time falls below this fraction, so that summation order stays the same. */
const REBALANCE_THRESHOLD = 0.9

/**
 * Divides microbatches among workers in proportion to their speed, so that all finish at the same time (as in HetPipe).
 */
export class LoadBalancer {
  #costs: (number | undefined)[]
  #current: readonly number[] = []

  constructor(workers: number) {
    this.#costs = Array.from({ length: workers }, () => undefined)
  }

  /** @returns the number of microbatches of each worker, `count` in total */
  assign(count: number): readonly number[] {
    const costs = this.#estimates()
    const best = divide(count, costs)
    const isCurrentValid = this.#current.length === costs.length && sum(this.#current) === count
    if (!isCurrentValid || makespan(best, costs) < REBALANCE_THRESHOLD * makespan(this.#current, costs))
      this.#current = best
    this.#costs = this.#costs.map((cost, i) =>
      cost !== undefined && this.#current[i] === 0 ? FORGETTING * cost : cost
    )
    return this.#current
  }

  /** Milliseconds per microbatch of each worker; undefined before the first measurement. */
  get costs(): readonly (number | undefined)[] {
    return this.#costs
  }

  /** Microbatches of each worker in the last step; empty after a change of workers. */
  get shares(): readonly number[] {
    return this.#current
  }

  /** One worker more. */
  add(): void {
    this.#costs = [...this.#costs, undefined]
    this.#current = []
  }

  record(worker: number, microbatches: number, ms: number): void {
    if (microbatches === 0) return
    const average = this.#costs[worker]
    const latest = ms / microbatches
    this.#costs[worker] = average === undefined ? latest : average + SMOOTHING * (latest - average)
  }

  remove(worker: number): void {
    this.#costs = this.#costs.filter((_, i) => i !== worker)
    this.#current = []
  }

  /** Workers without a measurement are assumed to be average. */
  #estimates(): readonly number[] {
    const known = this.#costs.filter(cost => cost !== undefined)
    const mean = known.length === 0 ? 1 : sum(known) / known.length
    return this.#costs.map(cost => cost ?? mean)
  }
}

/**
 * Assigns each microbatch to the worker that would finish it first; ties go to the last, because the first also does
 * the reduction. The first worker gets at least one.
 */
export function divide(count: number, costs: readonly number[]): readonly number[] {
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

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}
