/**
 * What the nodes of a simulation hold in common, to save memory and time. Each real node has its own copy. Nodes do not share
 * anything while checkers run, so that none can hide a fault of another.
 */
import { formatId, type Predictor, type PredictorId } from '../../src/admb/index.js'
import { appendRun, type Contributor, ContributorTable, type Coverage } from '../../src/admb/state/coverage.js'

const MAX_SHARED = 4096

/** The newest predictors, shared between the nodes that adopt them. A node recomputes a predictor that has been evicted. */
export class SharedPredictors {
  readonly #predictors = new Map<string, Predictor>()

  add(predictor: Predictor): void {
    this.#predictors.set(formatId(predictor.id), predictor)
    if (this.#predictors.size > MAX_SHARED) {
      this.#predictors.delete(this.#predictors.keys().next().value as string)
    }
  }

  get(id: PredictorId): Predictor | undefined {
    return this.#predictors.get(formatId(id))
  }
}

/** The contributors of all nodes, and the newest coverages of headers. */
export class SharedContributors extends ContributorTable {
  readonly #dictionary: number[] | undefined
  readonly #coverages = new Map<number, Coverage>()
  /** Scratch memory: segments by contributor, which are 0 between calls. */
  #segments = new Float64Array(0)

  /** @param isDictionary whether it is the dictionary of all edges */
  constructor(isDictionary: boolean) {
    super()
    this.#dictionary = isDictionary ? [] : undefined
  }

  override get dictionary(): number[] | undefined {
    return this.#dictionary
  }

  override indexOf(contributor: Contributor): number {
    const index = super.indexOf(contributor)
    const dictionary = this.#dictionary
    if (dictionary !== undefined) while (dictionary.length <= index) dictionary.push(dictionary.length)
    return index
  }

  override intern(coverage: Coverage): Coverage {
    const sorted = this.#sorted(coverage)
    const key = hashOf(sorted)
    const known = this.#coverages.get(key)
    if (known !== undefined && isEqual(known, sorted)) return known
    this.#coverages.set(key, sorted)
    if (this.#coverages.size > MAX_SHARED) this.#coverages.delete(this.#coverages.keys().next().value as number)
    return sorted
  }

  /** The covered contributors in ascending order: each neighbour names them in another one. */
  #sorted({ contributors, runs, size }: Coverage): Coverage {
    if (this.#segments.length < this.limit) this.#segments = new Float64Array(2 * this.limit)
    const segments = this.#segments
    let position = 0
    for (let r = 0; r < runs.length; r += 3) {
      position += runs[r]
      for (const end = position + runs[r + 1]; position < end; position++)
        segments[contributors[position]] = runs[r + 2]
    }
    const sorted: { contributors: number[]; runs: number[] } = { contributors: [], runs: [] }
    for (let contributor = 0; sorted.contributors.length < size; contributor++) {
      if (segments[contributor] === 0) continue
      sorted.contributors.push(contributor)
      appendRun(sorted.runs, 0, 1, segments[contributor])
      segments[contributor] = 0
    }
    return { ...sorted, size }
  }
}

function hashOf({ contributors, runs }: Coverage): number {
  let hash = contributors.length
  for (const contributor of contributors) hash = Math.imul(hash ^ contributor, 0x01000193)
  for (const number of runs) hash = Math.imul(hash ^ number, 0x01000193)
  return hash
}

function isEqual(a: Coverage, b: Coverage): boolean {
  return isSame(a.contributors, b.contributors) && isSame(a.runs, b.runs)
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
