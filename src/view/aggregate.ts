/**
 * Totals over a set of peers. Each edge of the overlay carries the totals of the peers behind it, so every peer has those of the
 * whole network. All counts are whole numbers and sums saturate, so merging is associative and commutative bit by bit; only the
 * list of groups is cut to its largest ones. The size is bounded.
 */

import * as z from 'zod'
import { count } from '../base/schema.js'
import { Components, componentsOf } from './groups.js'
import { BUCKETS, lossBucket, rateBucket } from './names.js'
import type { NetworkTotals } from './rows.js'
import { MAX_TRAIL, type NetworkStatus } from './status.js'

/**
 * A sample of the predictors that a peer held recently. With many updates per second, two statuses rarely contain the same current
 * predictor, but peers that follow one predictor have held common ones. All peers sample alike (update numbers divisible by
 * higher powers of two are kept), so common predictors remain in the samples.
 */
export interface HeldPredictor {
  readonly updates: number
  /** Digest of the content, hexadecimal. */
  readonly digest: string
}

/** Maximum number of predictors in a window. */
const MAX_DIGESTS = 1024
/** Published digits of a digest, enough to distinguish predictors for display. */
const DIGEST_DIGITS = 8

export class RecentDigests {
  #held: HeldPredictor[] = []

  add(...held: readonly HeldPredictor[]): void {
    this.#held.push(...held)
    if (this.#held.length > 4 * MAX_TRAIL) this.#held = thin(this.#held, 2 * MAX_TRAIL)
  }

  /** Sample of the predictors added since the last call. */
  take(): readonly HeldPredictor[] {
    const held = thin(this.#held, MAX_TRAIL)
    this.#held = []
    return held
  }
}

/** The predictors that a peer held within some time, with short digests. */
export class HeldWindow {
  #held: { readonly at: number; readonly updates: number; readonly digest: string }[] = []

  add(held: readonly HeldPredictor[], now: number): void {
    for (const { updates, digest } of held)
      this.#held.push({ at: now, updates, digest: digest.slice(0, DIGEST_DIGITS) })
  }

  /** The current one, then those of the last `ms`, the newest first. */
  sample(current: HeldPredictor, now: number, ms: number): [updates: number, digest: string][] {
    this.#held = this.#held.slice(-MAX_DIGESTS)
    const recent = this.#held.filter(({ at }) => now - at <= ms).toReversed()
    const all = [{ ...current, digest: current.digest.slice(0, DIGEST_DIGITS) }, ...recent]
    return all.map(({ updates, digest }) => [updates, digest])
  }
}

function thin(held: readonly HeldPredictor[], count: number): HeldPredictor[] {
  if (held.length <= count) return [...held]
  return [...held].sort((a, b) => divisibility(b.updates) - divisibility(a.updates)).slice(0, count)
}

/** The largest power of two that divides a number. */
function divisibility(updates: number): number {
  if (updates === 0) return Number.MAX_SAFE_INTEGER
  let power = 1
  while (updates % (2 * power) === 0) power *= 2
  return power
}

/** Maximum number of groups and of versions; peers of further ones are counted in the totals only. */
const MAX_GROUPS = 6
/** Maximum number of predictors that are kept of a group. */
const MAX_HELD = 16
/** Rates are summed in thousandths, losses in millionths. */
const MILLI = 1000
const MICRO = 1_000_000
/** Sums of losses have two parts, because squared errors in the unit of a target can be large. */
const HIGH = 2 ** 40

const histogram = z.array(count).length(BUCKETS)

/** Summed over the peers. */
const counts = {
  peers: count,
  /** Peers whose stream has ended, that report a problem, and whose loss rose within the last minutes. */
  ended: count,
  problems: count,
  drifting: count,
  /** Peers whose stream has not ended, or whose loss rose. */
  learning: count,
  inputs: count,
  /** Thousandths of inputs per second. */
  rate: count,
  /** Bytes of frames. */
  sent: count,
  received: count,
  /** Bytes of frames sent per second, and what they would be with float32 sums. */
  sendRate: count,
  float32Rate: count,
  adopted: count,
  discarded: count,
  skipped: count,
  /** Sum of the progressive losses in millionths, over `lossInputs` inputs, and the same for the last inputs. */
  loss: count,
  highLoss: count,
  lossInputs: count,
  recentLoss: count,
  highRecentLoss: count,
  recentLossInputs: count,
  /** Inputs whose class was predicted correctly, of `hitInputs`, and the same for the last inputs. */
  hits: count,
  hitInputs: count,
  recentHits: count,
  recentHitInputs: count
}

export const aggregateSchema = z.object({
  ...counts,
  /** Updates of the best predictor. */
  updates: count,
  /** Number of peers by recent loss, and by inputs per second. */
  losses: histogram,
  rates: histogram,
  /** Peers that follow the same predictor, the largest group first. */
  groups: z
    .array(
      z.object({
        peers: count,
        updates: count,
        /** Predictors that they held recently: updates, and first digits of the digest. */
        held: z.array(z.tuple([count, z.string().regex(/^[0-9a-f]{8}$/)])).max(MAX_HELD)
      })
    )
    .max(MAX_GROUPS),
  /** Number of peers by version of the software. */
  versions: z.array(z.tuple([z.string().max(20), count])).max(MAX_GROUPS)
})

export type Aggregate = z.infer<typeof aggregateSchema>
type AggregateGroup = Aggregate['groups'][number]

const COUNTS = Object.keys(counts) as (keyof typeof counts)[]

const zero = (): number[] => new Array<number>(BUCKETS).fill(0)

const EMPTY: Aggregate = {
  ...(Object.fromEntries(COUNTS.map(key => [key, 0])) as Record<keyof typeof counts, number>),
  updates: 0,
  losses: zero(),
  rates: zero(),
  groups: [],
  versions: []
}

/** The contribution of one peer. @param held predictors that it held recently, the current one included */
export function aggregateOf(status: NetworkStatus, held: AggregateGroup['held'], isDrifting: boolean): Aggregate {
  const { updates } = status.predictor
  const { inputs, inputsPerSecond, loss, accuracy, recent, ended, software = '' } = status
  // The error of a regression is compared with the variance of its target.
  const recentLoss = recent?.r2 === undefined ? (recent?.loss ?? loss) : 1 - recent.r2
  return {
    ...EMPTY,
    peers: 1,
    ended: Number(ended),
    problems: Number(status.problem !== undefined),
    drifting: Number(isDrifting),
    learning: Number(!ended || isDrifting),
    inputs,
    rate: whole(MILLI * inputsPerSecond),
    sent: status.sent,
    received: status.received,
    sendRate: status.sendRate ?? 0,
    float32Rate: status.float32Rate ?? status.sendRate ?? 0,
    adopted: status.adopted,
    discarded: status.discarded,
    skipped: status.skipped ?? 0,
    ...(loss !== undefined && lossSum(loss, inputs)),
    ...(recent && recentLossSum(recent.loss, recent.inputs)),
    ...(accuracy !== undefined && { hits: whole(accuracy * inputs), hitInputs: inputs }),
    ...(recent?.accuracy !== undefined && {
      recentHits: whole(recent.accuracy * recent.inputs),
      recentHitInputs: recent.inputs
    }),
    updates,
    losses: recentLoss === undefined ? EMPTY.losses : single(lossBucket(recentLoss)),
    rates: single(rateBucket(inputsPerSecond)),
    groups: [{ peers: 1, updates, held: sampleHeld(held) }],
    versions: [[software, 1]]
  }
}

/** The totals of disjoint sets of peers. */
export function merge(parts: readonly Aggregate[]): Aggregate {
  if (parts.length === 1) return parts[0]
  const sums = Object.fromEntries(COUNTS.map(key => [key, sum(parts.map(part => part[key]))]))
  const buckets = (of: (part: Aggregate) => readonly number[]) =>
    EMPTY.losses.map((_, bucket) => sum(parts.map(part => of(part)[bucket])))
  return {
    ...(sums as Record<keyof typeof counts, number>),
    updates: parts.reduce((most, { updates }) => Math.max(most, updates), 0),
    losses: buckets(part => part.losses),
    rates: buckets(part => part.rates),
    groups: mergeGroups(parts.flatMap(({ groups }) => groups)),
    versions: mergeVersions(parts.flatMap(({ versions }) => versions))
  }
}

/** Mean loss or share; undefined without inputs. */
function mean(total: number, inputs: number, unit = 1): number | undefined {
  return inputs === 0 ? undefined : total / inputs / unit
}

function lossSum(loss: number, inputs: number): Pick<Aggregate, 'loss' | 'highLoss' | 'lossInputs'> {
  const sum = MICRO * loss * inputs
  return { loss: whole(sum % HIGH), highLoss: whole(Math.floor(sum / HIGH)), lossInputs: inputs }
}

function recentLossSum(
  mean: number,
  inputs: number
): Pick<Aggregate, 'recentLoss' | 'highRecentLoss' | 'recentLossInputs'> {
  const { loss, highLoss, lossInputs } = lossSum(mean, inputs)
  return { recentLoss: loss, highRecentLoss: highLoss, recentLossInputs: lossInputs }
}

/** Totals as figures. */
export function figuresOf(all: Aggregate): Omit<NetworkTotals, 'groups' | 'versions'> {
  const { peers, ended, problems, drifting, adopted, discarded, skipped, sent, received, losses, rates } = all
  return {
    peers,
    ended,
    problems,
    drifting,
    inputs: all.inputs,
    inputsPerSecond: all.rate / MILLI,
    updates: all.updates,
    loss: mean(all.highLoss * HIGH + all.loss, all.lossInputs, MICRO),
    recentLoss: mean(all.highRecentLoss * HIGH + all.recentLoss, all.recentLossInputs, MICRO),
    accuracy: mean(all.hits, all.hitInputs),
    recentAccuracy: mean(all.recentHits, all.recentHitInputs),
    sent,
    bytesPerSecond: all.sendRate,
    float32BytesPerSecond: all.float32Rate,
    received,
    adopted,
    discarded,
    skipped,
    losses,
    rates
  }
}

const whole = (value: number) => Math.min(Number.MAX_SAFE_INTEGER, Math.round(value))
const sum = (values: readonly number[]) => values.reduce((a, b) => Math.min(Number.MAX_SAFE_INTEGER, a + b), 0)

/** A histogram with one peer. */
const single = (bucket: number) => EMPTY.losses.map((_, place) => Number(place === bucket))

/** Unites the groups that held a common predictor. */
function mergeGroups(groups: readonly AggregateGroup[]): AggregateGroup[] {
  const components = new Components<number | string>()
  for (const [index, { held }] of groups.entries()) for (const [, digest] of held) components.join(index, digest)
  return componentsOf([...groups.keys()], components)
    .map(indices => indices.map(index => groups[index as number]))
    .map(members => ({
      peers: sum(members.map(({ peers }) => peers)),
      updates: members.reduce((most, { updates }) => Math.max(most, updates), 0),
      held: sampleHeld(members.flatMap(({ held }) => held))
    }))
    .sort((a, b) => b.peers - a.peers || b.updates - a.updates || order(a.held[0]?.[1] ?? '', b.held[0]?.[1] ?? ''))
    .slice(0, MAX_GROUPS)
}

function mergeVersions(versions: Aggregate['versions']): Aggregate['versions'] {
  const peers = new Map<string, number>()
  for (const [version, count] of versions) peers.set(version, sum([peers.get(version) ?? 0, count]))
  return [...peers].sort((a, b) => b[1] - a[1] || order(a[0], b[0])).slice(0, MAX_GROUPS)
}

/** Half of the sample are the newest predictors, half those whose updates are divisible by the highest powers of two. */
export function sampleHeld(held: AggregateGroup['held']): AggregateGroup['held'] {
  const unique = [...new Map(held.map(one => [one[1], one])).values()].sort((a, b) => b[0] - a[0] || order(a[1], b[1]))
  if (unique.length <= MAX_HELD) return unique
  const newest = unique.slice(0, MAX_HELD / 2)
  const rest = unique.slice(MAX_HELD / 2).sort((a, b) => divisibility(b[0]) - divisibility(a[0]))
  return [...newest, ...rest.slice(0, MAX_HELD / 2)]
}

const order = (a: string, b: string) => (a < b ? -1 : Number(a > b))
