/**
 * The states of the planner's dynamic program: what has been decided for the layers below, of which the best is kept for each number of
 * saved buckets.
 */

export interface State {
  readonly savedMs: number
  readonly savedBytes: number
  readonly keeps: readonly number[]
  readonly offloads: readonly number[]
  readonly unstashed: readonly number[]
  readonly resident: readonly number[]
  readonly deviceOutputs: readonly number[]
  readonly peak: number
}

export const INITIAL_STATE: State = {
  savedMs: 0,
  savedBytes: 0,
  keeps: [],
  offloads: [],
  unstashed: [],
  resident: [],
  deviceOutputs: [],
  peak: 0
}

/** One layer of the dynamic program. */
export interface Step {
  /** Bytes in use while it is executed, without saved activations, resident weights and stashed outputs. */
  live(isBelowResident: boolean, isOffloaded?: boolean): number
  /** Bytes of outputs on the device while it is executed, and of those that stay for the backward pass. */
  readonly stashed: number
  readonly staying: number
  /** Memory and time of saving its activations, and of keeping its weights resident. */
  readonly activationBytes: number
  readonly activationMs: number
  /** Time of saving its activations on the host; none if they cannot move there. */
  readonly offloadMs: number
  readonly weightBytes: number
  readonly weightMs: number
  /** Memory and time of keeping its outputs, and later their gradients, on the device; no time if they cannot stay. */
  readonly outputBytes: number
  readonly outputMs: number
  /** Time of recomputing its outputs. */
  readonly againMs: number
}

/** What a state is compared by: the time that it saves, for the number of saved buckets and whether the last layer is resident. */
interface Value {
  readonly savedMs: number
  readonly savedBytes: number
  readonly isResident: boolean
}

/** Keeps the state if it is the best one with so many saved buckets. It is created only then. */
function keepBest(
  next: Map<number, State>,
  bucket: number,
  { savedMs, savedBytes, isResident }: Value,
  create: () => State
): void {
  const index = 2 * Math.ceil(savedBytes / bucket) + (isResident ? 1 : 0)
  const other = next.get(index)
  if (other === undefined || other.savedMs < savedMs) next.set(index, create())
}

/**
 * Extends all states by one layer: with and without saved activations, on the device or on the host, resident weights, and outputs on
 * the device, as far as they fit.
 */
export function extend(
  states: ReadonlyMap<number, State>,
  next: Map<number, State>,
  layer: number,
  limit: number,
  bucket: number,
  step: Step
): void {
  const { activationBytes, activationMs, offloadMs, outputBytes, outputMs, weightBytes, weightMs } = step
  const activations = [
    { bytes: 0, ms: 0, saves: false, offloads: false },
    ...(activationMs > 0 ? [{ bytes: activationBytes, ms: activationMs, saves: true, offloads: false }] : []),
    ...(offloadMs > 0 ? [{ bytes: 0, ms: offloadMs, saves: false, offloads: true }] : [])
  ].map(choice => ({
    ...choice,
    liveBytes: step.stashed + step.live(false, choice.offloads),
    liveAboveResident: step.stashed + step.live(true, choice.offloads)
  }))
  for (const before of states.values()) {
    const isBelowResident = before.resident.at(-1) === layer - 1
    for (const { bytes, ms, saves, offloads, liveBytes, liveAboveResident } of activations) {
      const live = isBelowResident ? liveAboveResident : liveBytes
      for (const keepsOutputs of outputMs > 0 ? [false, true] : [false]) {
        const during = before.savedBytes + bytes + (keepsOutputs ? outputBytes : 0)
        if (during + live > limit) continue
        for (const isResident of weightMs > 0 ? [false, true] : [false]) {
          const savedMs = before.savedMs + ms + (keepsOutputs ? outputMs : 0) + (isResident ? weightMs : 0)
          const savedBytes = during + step.staying + (isResident ? weightBytes : 0)
          keepBest(next, bucket, { savedMs, savedBytes, isResident }, () => ({
            ...before,
            savedMs,
            savedBytes,
            keeps: saves ? [...before.keeps, layer] : before.keeps,
            offloads: offloads ? [...before.offloads, layer] : before.offloads,
            resident: isResident ? [...before.resident, layer] : before.resident,
            deviceOutputs: keepsOutputs ? [...before.deviceOutputs, layer] : before.deviceOutputs,
            peak: Math.max(before.peak, during + live)
          }))
        }
      }
    }
  }
}

/**
 * Extends all states by a segment of layers, which save nothing else. While they are executed, the outputs of all of them are on the
 * device, and then only those of the last one.
 */
export function extendBySegment(
  states: ReadonlyMap<number, State>,
  next: Map<number, State>,
  [from, to]: readonly [number, number],
  limit: number,
  bucket: number,
  steps: readonly Step[]
): void {
  const segment = steps.slice(from, to + 1)
  const inner = segment.slice(0, -1)
  const outputs = segment.reduce((sum, { staying }) => sum + staying, 0)
  // Below the first layer that is trained, the outputs of two layers are on the device.
  const input = steps[from].stashed - steps[from].staying
  const lostMs = inner.reduce((sum, { againMs }) => sum + againMs, 0)
  const [most, mostAboveResident] = [false, true].map(isBelowResident =>
    Math.max(...segment.map(({ live }, k) => live(k === 0 && isBelowResident)))
  )
  for (const before of states.values()) {
    const live = before.resident.at(-1) === from - 1 ? mostAboveResident : most
    const during = before.savedBytes + input + outputs + live
    if (during > limit) continue
    const savedMs = before.savedMs - lostMs
    const savedBytes = before.savedBytes + steps[to].staying
    keepBest(next, bucket, { savedMs, savedBytes, isResident: false }, () => ({
      ...before,
      savedMs,
      savedBytes,
      unstashed: [...before.unstashed, ...inner.map((_, k) => from + k)],
      peak: Math.max(before.peak, during)
    }))
  }
}
