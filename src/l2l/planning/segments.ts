/**
 * Segments of layers whose outputs the backward pass recomputes, in nested sweeps: the dynamic program of Rotor (Beaumont et al.,
 * "Optimal checkpointing for heterogeneous chains") over the memory that a segment takes. For equal layers it finds the schedules of
 * Revolve.
 */
import type { LayerPlan } from '../executor/types.js'

/** A layer in a segment. */
export interface SegmentLayer {
  /** Bytes on the device while it is executed, without stashed outputs and saved activations. */
  readonly live: number
  readonly outputBytes: number
  readonly activationBytes: number
  /** Time that saved activations save; 0 if they cannot be saved. */
  readonly activationMs: number
  /** Time of recomputing its outputs. */
  readonly againMs: number
}

/** A way to execute the backward pass of a segment whose input is on the device. */
export interface SegmentPlan {
  /** Peak bytes, without the input. */
  readonly peak: number
  /** Time beyond that of a backward pass with all outputs. */
  readonly lostMs: number
  /**
   * The first layer whose input is kept in the first sweep, with the plans of the layers below and from there on; and whether its
   * layer below, the only one, saves its activations. Undefined for a single layer.
   */
  readonly split?: {
    readonly at: number
    readonly isSaved: boolean
    readonly below: SegmentPlan
    readonly above: SegmentPlan
  }
}

/**
 * The best ways for each segment: less time takes more memory.
 * @param last exclusive end of the layers
 * @param longest layers of a segment
 * @param limit largest peak
 * @param bucket of ways whose peaks are in one bucket, one is kept
 * @returns a function of the first and the last layer of a segment
 */
export function segmentPlans(
  layers: readonly SegmentLayer[],
  longest: number,
  limit: number,
  bucket: number
): (first: number, last: number) => readonly SegmentPlan[] {
  // The ways by the first layer and the length.
  const fronts: SegmentPlan[][][] = layers.map(() => [])
  const of = (first: number, last: number) => fronts[first]?.[last - first] ?? []
  for (let length = 0; length < longest; length++) {
    for (let first = 0; first + length < layers.length; first++) {
      fronts[first][length] = frontOf(layers, of, first, first + length, limit, bucket)
    }
  }
  return of
}

function frontOf(
  layers: readonly SegmentLayer[],
  of: (first: number, last: number) => readonly SegmentPlan[],
  first: number,
  last: number,
  limit: number,
  bucket: number
): SegmentPlan[] {
  const { live, outputBytes } = layers[last]
  if (first === last) return outputBytes + live <= limit ? [{ peak: outputBytes + live, lostMs: 0 }] : []
  const best: SegmentPlan[] = []
  const add = (plan: SegmentPlan) => {
    const index = Math.ceil(plan.peak / bucket)
    if (best[index] === undefined || plan.lostMs < best[index].lostMs) best[index] = plan
  }
  // While a sweep executes the layers below the split, the gradient of the last output is on the device.
  let sweep = 0
  let againMs = 0
  for (let at = first + 1; at <= last; at++) {
    const layer = layers[at - 1]
    const input = at - 1 > first ? layers[at - 2].outputBytes : 0
    sweep = Math.max(sweep, input + layer.outputBytes + layer.live + outputBytes)
    againMs += layer.againMs
    for (const isSaved of at === first + 1 && layer.activationMs > 0 ? [false, true] : [false]) {
      const saved = isSaved ? layer.activationBytes : 0
      const kept = layer.outputBytes + saved
      const [above, below] = [of(at, last), of(first, at - 1)]
      const lostMs = againMs - (isSaved ? layer.activationMs : 0)
      // For each peak at which one of both has a better way.
      for (let [i, j] = [0, 0]; i < above.length && j < below.length; ) {
        const [high, low] = [above[i].peak + kept, below[j].peak + saved]
        const peak = Math.max(sweep + saved, high, low)
        if (peak > limit) break
        add({
          peak,
          lostMs: lostMs + above[i].lostMs + below[j].lostMs,
          split: { at, isSaved, below: below[j], above: above[i] }
        })
        const next = Math.min(
          i + 1 < above.length ? above[i + 1].peak + kept : Number.POSITIVE_INFINITY,
          j + 1 < below.length ? below[j + 1].peak + saved : Number.POSITIVE_INFINITY
        )
        if (next === Number.POSITIVE_INFINITY) break
        if (i + 1 < above.length && above[i + 1].peak + kept <= next) i++
        if (j + 1 < below.length && below[j + 1].peak + saved <= next) j++
      }
    }
  }
  const front: SegmentPlan[] = []
  for (const plan of Object.values(best))
    if (plan.lostMs < (front.at(-1)?.lostMs ?? Number.POSITIVE_INFINITY)) front.push(plan)
  return front
}

/** The way of a front that takes the least time within the memory; undefined if none fits. */
export function fitting(front: readonly SegmentPlan[], limit: number): SegmentPlan | undefined {
  let [low, high] = [0, front.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (front[middle].peak <= limit) low = middle + 1
    else high = middle
  }
  return front[low - 1]
}

/** The plans of the layers of a segment, of which the last one keeps its outputs. */
export function plansOfSegment(plan: SegmentPlan): LayerPlan[] {
  return [...innerPlans(plan, 1), {}]
}

/** The plans of all layers but the last. */
function innerPlans({ split }: SegmentPlan, keptIn: number): LayerPlan[] {
  if (split === undefined) return []
  const { below, above, isSaved } = split
  const kept: LayerPlan = { outputs: 'recomputed', keptIn, activations: isSaved ? 'device' : undefined }
  return [...innerPlans(below, keptIn + 1), kept, ...innerPlans(above, keptIn)]
}
