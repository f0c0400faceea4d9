/** When each stage of a pipeline executes which operation, and how long stages wait for each other and for lines. */
import type { Operation } from '../executor/pipeline-orders.js'
import type { Pipeline } from '../executor/types.js'

/** An operation of a stage, in milliseconds from the start of the step. */
export interface TimedOperation extends Operation {
  readonly stage: number
  readonly start: number
  readonly end: number
}

export interface Timeline {
  readonly operations: readonly TimedOperation[]
  readonly ms: number
  /** Share of the time of all stages in which they wait. */
  readonly bubble: number
}

/** What stages receive over lines. */
interface Lines {
  /** When each stage has its rows and its weights. */
  readonly readyMs: readonly number[]
  /** Time of the tensor of an operation to the stage that needs it. */
  transferMs(operation: Operation, to: number): number
}

const NO_LINES: Lines = { readyMs: [], transferMs: () => 0 }

/** Executes each operation as soon as its stage and what it needs are ready. @param msOf time of an operation */
export function timelineOf(
  orders: readonly (readonly Operation[])[],
  msOf: (operation: Operation) => number,
  { readyMs, transferMs }: Lines = NO_LINES
): Timeline {
  const key = (kind: Operation['kind'], chunk: number, microbatch: number) => `${kind}/${chunk}/${microbatch}`
  const stages = orders.length
  const last = Math.max(0, ...orders.flat().map(({ chunk }) => chunk))
  const ends = new Map<string, number>()
  /** When the tensor of an operation is at the next stage, and when the line from a stage to another one is free. */
  const arrivals = new Map<string, number>()
  const lines = new Map<string, number>()
  const free = orders.map((_, stage) => readyMs[stage] ?? 0)
  const next = orders.map(() => 0)
  const operations: TimedOperation[] = []
  const needs = ({ kind, chunk, microbatch }: Operation) => {
    if (kind === 'forward') return chunk === 0 ? [] : [arrivals.get(key('forward', chunk - 1, microbatch))]
    if (kind === 'weights') return [ends.get(key('backward', chunk, microbatch))]
    const own = ends.get(key('forward', chunk, microbatch))
    return chunk === last ? [own] : [own, arrivals.get(key('backward', chunk + 1, microbatch))]
  }
  for (let before = -1; before < operations.length; ) {
    before = operations.length
    for (const [stage, order] of orders.entries()) {
      for (; next[stage] < order.length; next[stage]++) {
        const operation = order[next[stage]]
        const start = Math.max(free[stage], ...needs(operation).map(ready => ready ?? Number.POSITIVE_INFINITY))
        if (start === Number.POSITIVE_INFINITY) break
        const end = start + msOf(operation)
        const name = key(operation.kind, operation.chunk, operation.microbatch)
        const to = (operation.chunk + (operation.kind === 'forward' ? 1 : stages - 1)) % stages
        const sent = Math.max(end, lines.get(`${stage}/${to}`) ?? 0) + transferMs(operation, to)
        free[stage] = end
        ends.set(name, end)
        if (operation.kind !== 'weights') {
          arrivals.set(name, sent)
          lines.set(`${stage}/${to}`, sent)
        }
        operations.push({ ...operation, stage, start, end })
      }
    }
  }
  const ms = Math.max(...free)
  const busy = operations.reduce((sum, { start, end }) => sum + end - start, 0)
  return { operations, ms, bubble: ms === 0 ? 0 : 1 - busy / (orders.length * ms) }
}

/**
 * The share of the time in which stages wait that take equal times, with backward passes of twice the time of forward passes: with p stages,
 * m ≥ p microbatches and v chunks (p − 1)/(v·m + p − 1), and (p − 1)/(3·m + p − 1) for `zb-h1` (the sources of `pipelineOrders`).
 */
export function closedFormBubble(kind: Pipeline, stages: number, microbatches: number, chunks: number): number {
  return (stages - 1) / ((kind === 'zb-h1' ? 3 : chunks) * microbatches + stages - 1)
}
