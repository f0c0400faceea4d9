/**
 * The order of the operations of each stage of a pipeline, and where its layers are cut: what the stages execute, and what the planner
 * counts. A chunk is a sequence of consecutive layers; stage s of p has the chunks s, s + p, s + 2p, …
 */
import type { Pipeline } from './types.js'

/** A pass of a microbatch through a chunk. `weights`: the part of the backward pass that yields the gradients of the weights. */
export interface Operation {
  readonly kind: 'forward' | 'backward' | 'weights'
  readonly chunk: number
  readonly microbatch: number
}

/**
 * The operations of each stage. Backward passes follow in the order of the microbatches, so that gradients add up in the same order as
 * on one device.
 *
 * - `gpipe`: all forward passes, then all backward passes (Huang et al., "GPipe", 2019).
 * - `1f1b`: stage s starts with p − 1 − s forward passes, then forward and backward passes alternate (Narayanan et al.,
 *   "Memory-Efficient Pipeline-Parallel DNN Training", 2021, PipeDream-flush). It stores at most p − s microbatches.
 * - `interleaved`: the same with several chunks on each stage (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU
 *   Clusters Using Megatron-LM", 2021). Microbatches pass the chunks in groups of p; missing ones of the last group are left out.
 * - `zb-h1`: like `1f1b`, but a backward pass yields the gradient of the input first, and stage s computes the gradients of the weights
 *   s microbatches later (Qi et al., "Zero Bubble Pipeline Parallelism", 2024). It stores at most p microbatches.
 * @param chunks on each stage; 1 except for `interleaved`
 */
export function pipelineOrders(kind: Pipeline, stages: number, microbatches: number, chunks: number): Operation[][] {
  return Array.from({ length: stages }, (_, stage) => {
    /** Chunks and microbatches in the order of the passes, in groups that are complete. */
    const passes = (kind: Operation['kind']) => {
      const all: Operation[] = []
      for (let group = 0; group < microbatches; group += stages) {
        for (let k = 0; k < chunks; k++) {
          const chunk = stage + stages * (kind === 'forward' ? k : chunks - 1 - k)
          for (let i = 0; i < stages; i++) all.push({ kind, chunk, microbatch: group + i })
        }
      }
      return all
    }
    const forward = passes('forward')
    const backward = passes('backward')
    const later = stages - 1 - stage
    const warmUp = {
      gpipe: forward.length,
      '1f1b': later,
      interleaved: 2 * later + (chunks - 1) * stages,
      'zb-h1': later
    }
    const ahead = Math.min(forward.length, warmUp[kind])
    const order = forward.slice(0, ahead)
    for (const [i, pass] of backward.entries()) {
      order.push(...forward.slice(ahead + i, ahead + i + 1), pass)
      if (kind === 'zb-h1' && i >= stage) order.push({ ...backward[i - stage], kind: 'weights' })
    }
    if (kind === 'zb-h1') {
      order.push(
        ...backward.slice(Math.max(0, backward.length - stage)).map(pass => ({ ...pass, kind: 'weights' as const }))
      )
    }
    return order.filter(({ microbatch }) => microbatch < microbatches)
  })
}

/**
 * Cuts the layers into chunks so that the slowest one takes the least time, by a dynamic program.
 * @param ms of each layer
 * @param chunks at most the number of layers
 * @param speeds of the stages @default equal
 * @returns the first layer of each chunk
 */
export function cutLayers(ms: readonly number[], chunks: number, speeds: readonly number[] = [1]): number[] {
  const until = [0]
  for (const each of ms) until.push((until.at(-1) as number) + each)
  /** The slowest of the chunks so far that end before each layer, and the first layer of the last one. */
  let slowest = until.map((_, end) => (end === 0 ? 0 : Number.POSITIVE_INFINITY))
  const starts: number[][] = []
  for (let chunk = 0; chunk < chunks; chunk++) {
    const speed = speeds[chunk % speeds.length]
    const before = slowest
    const start = until.map(() => 0)
    slowest = until.map((_, end) => {
      let least = Number.POSITIVE_INFINITY
      for (let from = chunk; from < end; from++) {
        const most = Math.max(before[from], (until[end] - until[from]) / speed)
        if (most < least) [least, start[end]] = [most, from]
      }
      return least
    })
    starts.push(start)
  }
  const cut: number[] = []
  for (let end = ms.length; starts.length > 0; ) {
    end = (starts.pop() as number[])[end]
    cut.unshift(end)
  }
  return cut
}

/** Gain of another cut for which layers change their stages. */
const MIN_GAIN = 0.1

/**
 * Cuts the layers again for the measured speeds of the stages, unless the slowest stage would gain little.
 * @param cut first layer of each chunk
 * @param ms expected of each layer
 * @param slowness of the stages, as measured milliseconds for each expected one
 */
export function recutLayers(
  cut: readonly number[],
  ms: readonly number[],
  slowness: readonly number[]
): readonly number[] {
  const slowest = (chunks: readonly number[]) => {
    const busy = slowness.map(() => 0)
    for (const [k, from] of chunks.entries()) {
      const stage = k % slowness.length
      for (const each of ms.slice(from, chunks[k + 1])) busy[stage] += each * slowness[stage]
    }
    return Math.max(...busy)
  }
  const next = cutLayers(
    ms,
    cut.length,
    slowness.map(each => 1 / each)
  )
  return slowest(next) < (1 - MIN_GAIN) * slowest(cut) ? next : cut
}
